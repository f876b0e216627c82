// The Tracker gRPC service: a Registry behind a lock, with long polls.
//
// Built on gRPC's callback API: a waiting Acquire holds a small object and no thread, so that
// thousands may wait. One thread of its own lets time pass (expiry, poll time-outs); it sleeps
// until something is due. Thread-safe. Lifetime: Stop, then shut the server down, then destroy.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "proto/tracker.grpc.pb.h"
#include "rpc/door.h"
#include "tracker/registry.h"

namespace kiln::tracker {

class TrackerService : public v1::Tracker::CallbackService {
 public:
  struct Options {
    RegistryOptions registry;
    Door door;
    Clock* clock = &Clock::Real();
  };

  explicit TrackerService(Options options);
  ~TrackerService() override;  // no call may be running

  // Answers all waiting requests with Unavailable, and every later call too. Call before the
  // server's Shutdown.
  void Stop();

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

 private:
  class Waiter;  // one Acquire that is being answered later

  int64_t NowMs() const;
  // Runs `call` on the registry under the lock, if the door admits the request, and answers all
  // whose turn came by it.
  template <typename Request, typename Call>
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const Request& request,
                                   const Call& call);
  void LogEvents();                            // lock held
  void AnswerGranted();                        // lock held
  void AnswerOverdue();                        // lock held
  std::optional<int64_t> NextEventMs() const;  // lock held
  void Cancelled(Waiter* waiter);              // its client has gone
  void LetTimePass();

  Clock* const clock_;
  const Door door_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  uint64_t version_ = 0;  // counts the calls, so that the thread looks again when it may sleep
  Registry registry_;
  std::map<std::string, Waiter*> waiters_;  // by request id; each owns itself
  std::thread thread_;
};

}  // namespace kiln::tracker
