#include "rpc/lease_keeper.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/hash/unique_id.h"
#include "base/log.h"
#include "base/server/grpc_status.h"
#include "proto/tracker.grpc.pb.h"
#include "rpc/channel.h"

namespace kiln {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kCallDeadline{2'000};
constexpr milliseconds kLastCallDeadline{1'000};
constexpr milliseconds kLongestPoll{10'000};
// The tracker may answer this much later than the wait that it was asked for.
constexpr milliseconds kPollGrace{5'000};
// Holds until the tracker says otherwise.
constexpr milliseconds kRenewInterval{2'000};
constexpr milliseconds kBusyPause{20};
// Most releases in one call.
constexpr size_t kMaxReleases = 1'000;
constexpr std::chrono::hours kForEver{24 * 365};

using Answered = std::function<void(grpc::Status)>;

// Begins a call, and waits for its answer. A thread in one of gRPC's blocking calls takes turns at
// reading all sockets of the process, and a scheduler has hundreds of threads that call.
grpc::Status Await(const std::function<void(const Answered& answered)>& begin) {
  grpc::Status answer;
  absl::Notification answered;
  begin([&](grpc::Status status) {
    answer = std::move(status);
    answered.Notify();
  });
  answered.WaitForNotification();
  return answer;
}

milliseconds ToMilliseconds(absl::Duration duration) {
  if (duration >= absl::Hours(24 * 365)) return kForEver;
  return std::max(milliseconds(0), absl::ToChronoMilliseconds(duration));
}

}  // namespace

class LeaseKeeper::Core : public std::enable_shared_from_this<Core> {
 public:
  explicit Core(Options options)
      : options_(std::move(options)),
        stub_(v1::Tracker::NewStub(MakeChannel(options_.tracker, options_.access))) {}

  StatusOr<LeasedWorker> Acquire(absl::Duration timeout, std::stop_token stop,
                                 const std::vector<std::string>& avoid);
  Snapshot snapshot() const;
  void Run();
  void Stop();
  void ReleaseAll();

 private:
  struct Held {
    v1::Lease lease;
    std::shared_ptr<LeasedWorker::Signals> signals;
    SteadyClock::time_point renewed;
  };

  // Waits for `pause`, or until stop. The caller holds the lock.
  void Pause(std::unique_lock<std::mutex>& lock, milliseconds pause, const std::stop_token& stop);
  StatusOr<LeasedWorker> AcquireFromTracker(SteadyClock::time_point until,
                                            const std::stop_token& stop,
                                            const std::vector<std::string>& avoid);
  Status Poll(const v1::AcquireRequest& request, const std::stop_token& stop,
              v1::AcquireReply* reply);
  LeasedWorker Keep(v1::Lease lease);
  void ReleaseLease(const std::string& lease_id);
  void Drop(const std::string& request_id);
  Status Waited() const;
  Status Note(const grpc::Status& status);
  void NoteQueue(const v1::AcquireReply& reply);

  bool SendReleases(milliseconds deadline);
  bool SendRenew();
  void MarkLostAfterOutage();
  // The caller holds the lock.
  milliseconds RenewInterval() const;
  void MarkLost(const std::string& lease_id, std::string_view why);

  const Options options_;
  const std::unique_ptr<v1::Tracker::Stub> stub_;
  std::stop_source stop_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Held> held_;
  // Leases to give back, and requests to drop.
  std::vector<std::string> release_ids_;
  std::vector<std::string> drop_ids_;
  // Handles that are alive, and Acquires that talk to the tracker.
  int slots_in_use_ = 0;
  milliseconds told_interval_ = kRenewInterval;
  Snapshot snapshot_;
};

// ---- acquiring ------------------------------------------------------------------------------

StatusOr<LeasedWorker> LeaseKeeper::Core::Acquire(absl::Duration timeout, std::stop_token stop,
                                                  const std::vector<std::string>& avoid) {
  const auto until = SteadyClock::now() + ToMilliseconds(timeout);
  // Stops when the caller requests a stop, or this object does.
  std::stop_source either;
  const auto end = [&] {
    either.request_stop();
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  };
  const std::stop_callback on_caller(stop, end);
  const std::stop_callback on_own(stop_.get_token(), end);

  std::unique_lock lock(mutex_);
  ++snapshot_.waiting;
  const bool room = changed_.wait_until(
      lock, until, [&] { return slots_in_use_ < options_.max_leases || either.stop_requested(); });
  StatusOr<LeasedWorker> result = Cancelled("stopped while waiting for a worker");
  if (!room) {
    result = DeadlineExceeded("all {} leases are in use", options_.max_leases);
  } else if (!either.stop_requested()) {
    ++slots_in_use_;
    lock.unlock();
    result = AcquireFromTracker(until, either.get_token(), avoid);
    lock.lock();
    if (!result.ok()) --slots_in_use_;
  }
  --snapshot_.waiting;
  changed_.notify_all();
  return result;
}

StatusOr<LeasedWorker> LeaseKeeper::Core::AcquireFromTracker(
    SteadyClock::time_point until, const std::stop_token& stop,
    const std::vector<std::string>& avoid) {
  v1::AcquireRequest request;
  request.set_request_id(UniqueId());
  request.set_scheduler_id(options_.scheduler_id);
  request.set_kind(options_.kind);
  request.set_key(options_.key);
  request.set_user(options_.user);
  request.set_priority(options_.priority);
  request.set_lease_ms(options_.lease_ms);
  request.set_incarnation(options_.incarnation);
  request.mutable_avoid_worker_ids()->Assign(avoid.begin(), avoid.end());
  RetryPause retry(options_.random);
  while (true) {
    const auto asked = SteadyClock::now();
    const auto left = std::chrono::duration_cast<milliseconds>(until - asked);
    request.set_wait_ms(
        static_cast<uint32_t>(std::clamp(left, milliseconds(0), kLongestPoll).count()));
    if (options_.use != nullptr) request.set_use(options_.use());
    v1::AcquireReply reply;
    const Status status = Poll(request, stop, &reply);
    if (status.ok()) NoteQueue(reply);
    if (status.ok() && reply.has_lease()) return Keep(std::move(*reply.mutable_lease()));
    if (status.code() == StatusCode::kInvalidArgument) return status;
    if (stop.stop_requested() || SteadyClock::now() >= until) {
      // A grant may be on its way: dropping the request gives the lease back.
      Drop(request.request_id());
      if (stop.stop_requested()) return Cancelled("stopped while waiting for a worker");
      return Waited();
    }
    std::unique_lock lock(mutex_);
    if (!status.ok()) {
      Pause(lock, ToMilliseconds(retry.Next()), stop);
    } else {
      retry.Reset();
      const bool early = SteadyClock::now() - asked < milliseconds(request.wait_ms()) / 2;
      if (early) Pause(lock, kBusyPause, stop);
    }
  }
}

void LeaseKeeper::Core::Pause(std::unique_lock<std::mutex>& lock, milliseconds pause,
                              const std::stop_token& stop) {
  changed_.wait_for(lock, pause, [&] { return stop.stop_requested(); });
}

Status LeaseKeeper::Core::Poll(const v1::AcquireRequest& request, const std::stop_token& stop,
                               v1::AcquireReply* reply) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + milliseconds(request.wait_ms()) +
                       kPollGrace);
  const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
  return Note(Await([&](const Answered& answered) {
    stub_->async()->Acquire(&context, &request, reply, answered);
  }));
}

LeasedWorker LeaseKeeper::Core::Keep(v1::Lease lease) {
  std::lock_guard lock(mutex_);
  auto signals = std::make_shared<LeasedWorker::Signals>();
  held_[lease.id()] = {lease, signals, SteadyClock::now()};
  changed_.notify_all();
  auto let_go = [core = weak_from_this(), id = lease.id()] {
    if (const auto alive = core.lock()) alive->ReleaseLease(id);
  };
  return LeasedWorker(std::move(lease), std::move(signals), std::move(let_go));
}

void LeaseKeeper::Core::ReleaseLease(const std::string& lease_id) {
  std::lock_guard lock(mutex_);
  --slots_in_use_;
  held_.erase(lease_id);
  // A lost lease is released too, because the tracker may still count it.
  release_ids_.push_back(lease_id);
  changed_.notify_all();
}

void LeaseKeeper::Core::Drop(const std::string& request_id) {
  std::lock_guard lock(mutex_);
  drop_ids_.push_back(request_id);
  changed_.notify_all();
}

// Says why no worker came in time.
Status LeaseKeeper::Core::Waited() const {
  std::lock_guard lock(mutex_);
  const std::string kind = options_.kind == v1::BUILDER ? "builder" : "runner";
  if (!snapshot_.tracker_reachable) {
    return DeadlineExceeded("no {} for '{}': the tracker at {} does not answer: {}", kind,
                            options_.key, options_.tracker, snapshot_.tracker_error);
  }
  if (snapshot_.matching_slots == 0) {
    return DeadlineExceeded("no {} for '{}' is registered with the tracker at {}; start one", kind,
                            options_.key, options_.tracker);
  }
  return DeadlineExceeded("all {} {} slots for '{}' are busy; position {} in the queue",
                          snapshot_.matching_slots, kind, options_.key, snapshot_.queue_position);
}

// Logs changes only. A refusal counts as an answer too. A call that this object cut itself says
// nothing about the tracker.
Status LeaseKeeper::Core::Note(const grpc::Status& status) {
  std::lock_guard lock(mutex_);
  const Status result = FromGrpc(status);
  if (result.code() == StatusCode::kCancelled) return result;
  const bool reachable = result.ok() || result.code() == StatusCode::kInvalidArgument ||
                         result.code() == StatusCode::kResourceExhausted;
  const std::string error(Message(result));
  if (error != snapshot_.tracker_error && !result.ok()) {
    LogWarn("the tracker at {}: {}; retrying", options_.tracker, error);
  } else if (reachable && !snapshot_.tracker_reachable && !snapshot_.tracker_error.empty()) {
    LogInfo("the tracker at {} answers again", options_.tracker);
  }
  snapshot_.tracker_reachable = reachable;
  snapshot_.tracker_error = error;
  return result;
}

void LeaseKeeper::Core::NoteQueue(const v1::AcquireReply& reply) {
  if (reply.has_lease()) return;
  std::lock_guard lock(mutex_);
  snapshot_.matching_slots = reply.matching_slots();
  snapshot_.queue_position = reply.queue_position();
}

LeaseKeeper::Snapshot LeaseKeeper::Core::snapshot() const {
  std::lock_guard lock(mutex_);
  Snapshot result = snapshot_;
  result.held = static_cast<int>(held_.size());
  return result;
}

// ---- keeping --------------------------------------------------------------------------------

void LeaseKeeper::Core::Run() {
  auto next_renew = SteadyClock::now();
  auto next_release = SteadyClock::now();
  RetryPause renew_retry(options_.random), release_retry(options_.random);
  // Whether something was held at the last look.
  bool renewing = false;
  std::unique_lock lock(mutex_);
  while (!stop_.stop_requested()) {
    const bool to_release = !release_ids_.empty() || !drop_ids_.empty();
    if (!held_.empty() && !renewing) next_renew = SteadyClock::now() + RenewInterval();
    renewing = !held_.empty();
    const auto now = SteadyClock::now();
    if (to_release && now >= next_release) {
      lock.unlock();
      const bool ok = SendReleases(kCallDeadline);
      lock.lock();
      if (ok) release_retry.Reset();
      if (!ok) next_release = SteadyClock::now() + ToMilliseconds(release_retry.Next());
    } else if (renewing && now >= next_renew) {
      lock.unlock();
      const bool ok = SendRenew();
      if (!ok) MarkLostAfterOutage();
      lock.lock();
      if (ok) renew_retry.Reset();
      next_renew = SteadyClock::now() + (ok ? RenewInterval() : ToMilliseconds(renew_retry.Next()));
    } else {
      auto wake = now + kForEver;
      if (to_release) wake = std::min(wake, next_release);
      if (renewing) wake = std::min(wake, next_renew);
      changed_.wait_until(lock, wake, [&] {
        return stop_.stop_requested() || renewing != !held_.empty() ||
               (!to_release && !(release_ids_.empty() && drop_ids_.empty()));
      });
    }
  }
}

milliseconds LeaseKeeper::Core::RenewInterval() const {
  milliseconds interval = told_interval_;
  for (const auto& [id, held] : held_) {
    interval = std::min(interval, milliseconds(held.lease.lease_ms() / 3));
  }
  return std::max(interval, milliseconds(10));
}

bool LeaseKeeper::Core::SendReleases(milliseconds deadline) {
  v1::ReleaseRequest request;
  request.set_scheduler_id(options_.scheduler_id);
  {
    std::lock_guard lock(mutex_);
    const auto part = [](const std::vector<std::string>& ids) {
      return std::span(ids).first(std::min(ids.size(), kMaxReleases));
    };
    for (const std::string& id : part(release_ids_)) request.add_lease_ids(id);
    for (const std::string& id : part(drop_ids_)) request.add_request_ids(id);
  }
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  v1::ReleaseReply reply;
  const grpc::Status status = Await([&](const Answered& answered) {
    stub_->async()->Release(&context, &request, &reply, answered);
  });
  if (!Note(status).ok()) return false;
  std::lock_guard lock(mutex_);
  // Ids that came in during the call stand behind the ids that were sent.
  release_ids_.erase(release_ids_.begin(), release_ids_.begin() + request.lease_ids_size());
  drop_ids_.erase(drop_ids_.begin(), drop_ids_.begin() + request.request_ids_size());
  return true;
}

bool LeaseKeeper::Core::SendRenew() {
  v1::RenewRequest request;
  request.set_scheduler_id(options_.scheduler_id);
  request.set_incarnation(options_.incarnation);
  const double use = options_.use != nullptr ? options_.use() : 0;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, held] : held_) {
      *request.add_leases() = held.lease;
      request.mutable_leases()->rbegin()->set_use(use);
    }
  }
  const auto sent = SteadyClock::now();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
  const std::stop_callback cancel(stop_.get_token(), [&context] { context.TryCancel(); });
  v1::RenewReply reply;
  const grpc::Status status = Await([&](const Answered& answered) {
    stub_->async()->Renew(&context, &request, &reply, answered);
  });
  if (!Note(status).ok()) return false;
  for (const std::string& id : reply.lost_lease_ids()) MarkLost(id, "the tracker revoked it");
  std::lock_guard lock(mutex_);
  for (const v1::Lease& lease : request.leases()) {
    const auto it = held_.find(lease.id());
    if (it == held_.end()) continue;
    it->second.renewed = sent;
    it->second.signals->wanted =
        std::find(reply.wanted_lease_ids().begin(), reply.wanted_lease_ids().end(), lease.id()) !=
        reply.wanted_lease_ids().end();
  }
  options_.access.TakeRevoked(reply.revoked());
  if (reply.next_renew_ms() > 0) told_interval_ = milliseconds(reply.next_renew_ms());
  return true;
}

void LeaseKeeper::Core::MarkLostAfterOutage() {
  std::vector<std::string> lost;
  {
    std::lock_guard lock(mutex_);
    const auto oldest = SteadyClock::now() - milliseconds(options_.outage_ms);
    for (const auto& [id, held] : held_) {
      if (held.renewed <= oldest) lost.push_back(id);
    }
  }
  for (const std::string& id : lost) {
    MarkLost(id, fmt::format("the tracker has not answered for {} ms", options_.outage_ms));
  }
}

// The handle stays with its owner, who learns of the loss by the signal. The signal runs the
// owner's callbacks, so no lock is held.
void LeaseKeeper::Core::MarkLost(const std::string& lease_id, std::string_view why) {
  std::shared_ptr<LeasedWorker::Signals> signals;
  {
    std::lock_guard lock(mutex_);
    const auto it = held_.find(lease_id);
    if (it == held_.end()) return;
    LogInfo("lease {} on {} is lost: {}", lease_id, it->second.lease.worker().address(), why);
    signals = it->second.signals;
    held_.erase(it);
  }
  signals->lost.request_stop();
}

void LeaseKeeper::Core::Stop() {
  stop_.request_stop();
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void LeaseKeeper::Core::ReleaseAll() {
  std::vector<std::string> ids;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return snapshot_.waiting == 0; });
    for (const auto& [id, held] : held_) ids.push_back(id);
    release_ids_.insert(release_ids_.end(), ids.begin(), ids.end());
    if (release_ids_.empty() && drop_ids_.empty()) return;
  }
  for (const std::string& id : ids) MarkLost(id, "the scheduler stops");
  SendReleases(kLastCallDeadline);
}

// ---- the keeper -----------------------------------------------------------------------------

LeaseKeeper::LeaseKeeper(Options options) : core_(std::make_shared<Core>(std::move(options))) {
  thread_ = std::thread([core = core_.get()] { core->Run(); });
}

LeaseKeeper::~LeaseKeeper() {
  core_->Stop();
  thread_.join();
  core_->ReleaseAll();
}

StatusOr<LeasedWorker> LeaseKeeper::Acquire(absl::Duration timeout, std::stop_token stop,
                                            const std::vector<std::string>& avoid) {
  // The copy keeps the core alive during this call, whatever the destructor does.
  const std::shared_ptr<Core> core = core_;
  return core->Acquire(timeout, std::move(stop), avoid);
}

LeaseKeeper::Snapshot LeaseKeeper::snapshot() const { return core_->snapshot(); }

}  // namespace kiln
