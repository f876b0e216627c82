// Calls a tracker, on a clock that advances when an input says so. Some calls wait. All calls are
// answered, at the latest when the tracker stops, and no worker ever has more leases than slots.
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "tests/fuzz/targets/calls.h"
#include "tests/fuzz/targets/calls.pb.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tracker/service.h"

namespace kiln::fuzz {
namespace {

using Async = v1::Tracker::StubInterface::async_interface;

constexpr int kMaxCalls = 12;

// Passes calls on to the tracker of an input, and reports when its handler has seen a call.
class Relay : public v1::Tracker::CallbackService {
 public:
  void Connect(tracker::TrackerService* tracker, std::function<void()> on_seen) {
    tracker_ = tracker;
    on_seen_ = std::move(on_seen);
  }

#define KILN_RELAY(Method)                                                                       \
  grpc::ServerUnaryReactor* Method(grpc::CallbackServerContext* context,                         \
                                   const v1::Method##Request* request, v1::Method##Reply* reply) \
      override {                                                                                 \
    return Seen(tracker_->Method(context, request, reply));                                      \
  }
  KILN_RELAY(Announce)
  KILN_RELAY(Acquire)
  KILN_RELAY(Renew)
  KILN_RELAY(Release)
  KILN_RELAY(List)
#undef KILN_RELAY

 private:
  grpc::ServerUnaryReactor* Seen(grpc::ServerUnaryReactor* reactor) {
    on_seen_();
    return reactor;
  }

  tracker::TrackerService* tracker_ = nullptr;
  std::function<void()> on_seen_;
};

// The calls of one input.
class Session {
 public:
  Session(v1::Tracker::Stub& stub, Relay& relay, tracker::TrackerService& tracker) : stub_(stub) {
    relay.Connect(&tracker, [this] { Note(seen_); });
  }

  // Makes a call and returns when it is answered. A call that may wait returns already when it is
  // seen. A request that is no message is answered without being seen.
  template <typename Request, typename Reply>
  const Reply& Call(void (Async::*method)(grpc::ClientContext*, const Request*, Reply*,
                                          std::function<void(grpc::Status)>),
                    const Request& request, bool may_wait = false) {
    auto& call = *calls_.emplace_back(std::make_unique<CallOf<Request, Reply>>(request));
    auto& typed = static_cast<CallOf<Request, Reply>&>(call);
    seen_ = false;
    (stub_.async()->*method)(&typed.context, &typed.request, &typed.reply,
                             [this, &call](const grpc::Status& status) {
                               call.status = status;
                               Note(call.answered);
                             });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return call.answered || (may_wait && seen_); });
    return typed.reply;
  }
  void WaitForAll() {
    std::unique_lock lock(mutex_);
    for (const auto& call : calls_) {
      changed_.wait(lock, [&] { return call->answered; });
      CheckAnswerFromChannel(call->status);
    }
  }

 private:
  struct Pending {
    virtual ~Pending() = default;
    grpc::ClientContext context;
    grpc::Status status;
    bool answered = false;
  };
  template <typename Request, typename Reply>
  struct CallOf : Pending {
    explicit CallOf(const Request& request) : request(request) {}
    Request request;
    Reply reply;
  };

  void Note(bool& what) {
    std::lock_guard lock(mutex_);
    what = true;
    changed_.notify_all();
  }

  v1::Tracker::Stub& stub_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Whether the handler has seen the newest call.
  bool seen_ = false;
  std::list<std::unique_ptr<Pending>> calls_;
};

void CheckList(Session& session) {
  const v1::ListReply list = session.Call<v1::ListRequest, v1::ListReply>(&Async::List, {});
  KILN_CHECK(list.busy_slots_size() == list.workers_size(), "{}", list.ShortDebugString());
  for (int i = 0; i < list.workers_size(); ++i) {
    KILN_CHECK(list.busy_slots(i) <= list.workers(i).slots(), "{}", list.ShortDebugString());
  }
  for (const v1::KeyState& key : list.keys()) {
    KILN_CHECK(key.free() <= key.total(), "{}", list.ShortDebugString());
  }
}

void Make(const TrackerCall& call, Session& session, FakeClock& clock) {
  switch (call.call_case()) {
    case TrackerCall::kAnnounce:
      session.Call<v1::AnnounceRequest, v1::AnnounceReply>(&Async::Announce, call.announce());
      return;
    case TrackerCall::kAcquire:
      session.Call<v1::AcquireRequest, v1::AcquireReply>(&Async::Acquire, call.acquire(),
                                                         call.acquire().wait_ms() > 0);
      return;
    case TrackerCall::kRenew:
      session.Call<v1::RenewRequest, v1::RenewReply>(&Async::Renew, call.renew());
      return;
    case TrackerCall::kRelease:
      session.Call<v1::ReleaseRequest, v1::ReleaseReply>(&Async::Release, call.release());
      return;
    case TrackerCall::kLetPassMs:
      clock.Advance(absl::Milliseconds(call.let_pass_ms()));
      return;
    default:
      CheckList(session);
  }
}

// One channel for all inputs, because servers start slowly.
struct Channel {
  Relay relay;
  std::unique_ptr<v1::Tracker::Stub> stub =
      v1::Tracker::NewStub(StartInProcess(relay).InProcessChannel({}));
};

void MakeAll(const TrackerCalls& calls) {
  static auto& channel = *new Channel;
  FakeClock clock;
  tracker::TrackerService::Options options;
  options.clock = &clock;
  options.registry.new_lease_id = [number = 0]() mutable {
    return fmt::format("lease{}", ++number);
  };
  tracker::TrackerService tracker(options);
  Session session(*channel.stub, channel.relay, tracker);
  for (int i = 0; i < std::min(calls.calls_size(), kMaxCalls); ++i) {
    Make(calls.calls(i), session, clock);
  }
  CheckList(session);
  tracker.Stop();
  session.WaitForAll();
}

}  // namespace

std::unique_ptr<google::protobuf::Message> NewCalls() { return std::make_unique<TrackerCalls>(); }

}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln::fuzz;
  TrackerCalls calls;
  if (!ParseCalls(InputText(data, size), calls)) return -1;
  MakeAll(calls);
  return 0;
}
