// The Tracker gRPC service: a Registry behind a lock, with long polls.
//
// The service is built on gRPC's callback API: a waiting Acquire holds a small object and no
// thread, so that thousands may wait. One thread of its own lets time pass (expiry, poll
// time-outs); it sleeps until something is due. Thread-safe. Lifetime: Stop, then shut the server
// down, then destroy.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "proto/tracker.grpc.pb.h"
#include "rpc/admission_control.h"
#include "tracker/registry.h"

namespace kiln::tracker {

class TrackerService : public v1::Tracker::CallbackService {
 public:
  struct Options {
    RegistryOptions registry;
    AdmissionControl admission;
    // Returns the farm's list of revoked certificates, for daemons that announce and renew. Null:
    // the farm has no keys.
    std::function<std::string()> revoked;
    Clock* clock = &Clock::Real();
  };

  explicit TrackerService(Options options);
  // No call may be running.
  ~TrackerService() override;

  // Answers all waiting requests and every later call with Unavailable. Called before the server's
  // Shutdown.
  void Stop();

  // Returns what the tracker knows now, for its pages.
  struct Figures {
    v1::ListReply list;
    Registry::Totals totals;
  };
  Figures Look();

  grpc::ServerUnaryReactor* Announce(grpc::CallbackServerContext* context,
                                     const v1::AnnounceRequest* request,
                                     v1::AnnounceReply* reply) override;
  grpc::ServerUnaryReactor* Acquire(grpc::CallbackServerContext* context,
                                    const v1::AcquireRequest* request,
                                    v1::AcquireReply* reply) override;
  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* context,
                                  const v1::RenewRequest* request, v1::RenewReply* reply) override;
  grpc::ServerUnaryReactor* Release(grpc::CallbackServerContext* context,
                                    const v1::ReleaseRequest* request,
                                    v1::ReleaseReply* reply) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const v1::ListRequest* request, v1::ListReply* reply) override;
  grpc::ServerUnaryReactor* SetWorkerMode(grpc::CallbackServerContext* context,
                                          const v1::SetWorkerModeRequest* request,
                                          v1::SetWorkerModeReply* reply) override;

 private:
  // One Acquire that is being answered later.
  class Waiter;

  int64_t NowMs() const;
  // Runs `call` on the registry under the lock if the admission admits the request. Answers the
  // request, and all requests whose turn came by the call.
  template <typename Request, typename Call>
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const Request& request,
                                   const Call& call);
  // The caller of the next four functions holds the lock.
  void LogEvents();
  void AnswerGranted();
  void AnswerOverdue();
  std::optional<int64_t> NextEventMs() const;
  // Has the thread look again if it would sleep beyond the next event.
  void NoteNextEvent(std::optional<int64_t> at_ms);
  // The waiter's client has gone.
  void Cancelled(Waiter* waiter);
  void LetTimePass();

  Clock* const clock_;
  const AdmissionControl admission_;
  const std::function<std::string()> revoked_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  // The time until which the thread sleeps; none: until something comes.
  std::optional<int64_t> sleeps_until_ms_;
  // Whether something comes before that time.
  bool is_sooner_ = false;
  Registry registry_;
  // Keyed by request id. Each waiter owns itself.
  std::map<std::string, Waiter*> waiters_;
  std::thread thread_;
};

}  // namespace kiln::tracker
