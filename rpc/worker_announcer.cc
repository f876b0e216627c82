#include "rpc/worker_announcer.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "rpc/channel.h"

namespace kiln {
namespace {

constexpr absl::Duration kCallDeadline = absl::Seconds(2);
constexpr absl::Duration kLeaveDeadline = absl::Seconds(1);
constexpr absl::Duration kLongestInterval = absl::Minutes(1);

}  // namespace

WorkerAnnouncer::WorkerAnnouncer(Options options) : options_(std::move(options)) {
  if (options_.tracker.empty()) return;
  stub_ = v1::Tracker::NewStub(MakeChannel(options_.tracker, options_.access));
  if (options_.modes != nullptr) {
    mode_changes_ = options_.modes->Subscribe([this] { AnnounceNow(); });
  }
  thread_ = std::thread([this] { Run(); });
}

WorkerAnnouncer::~WorkerAnnouncer() { Stop(); }

void WorkerAnnouncer::Stop() {
  if (!thread_.joinable()) return;
  stop_.request_stop();
  {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  thread_.join();
  // Announces `leaving` even if no answer came yet: an announcement may have arrived all the same.
  if (worker_id_.empty()) return;
  v1::AnnounceReply reply;
  AnnounceOnce(/*leaving=*/true, kLeaveDeadline, {}, &reply);
  std::lock_guard lock(mutex_);
  connected_ = false;
}

void WorkerAnnouncer::AnnounceNow() {
  std::lock_guard lock(mutex_);
  now_ = true;
  changed_.notify_all();
}

bool WorkerAnnouncer::connected() const {
  std::lock_guard lock(mutex_);
  return connected_;
}

bool WorkerAnnouncer::WaitConnected(absl::Duration timeout) {
  std::unique_lock lock(mutex_);
  if (stub_ == nullptr) return false;
  const auto until = std::chrono::steady_clock::now() +
                     absl::ToChronoMilliseconds(std::min(timeout, absl::Hours(24)));
  changed_.wait_until(lock, until, [this] { return connected_ || stop_.stop_requested(); });
  return connected_;
}

grpc::Status WorkerAnnouncer::AnnounceOnce(bool leaving, absl::Duration deadline,
                                           std::stop_token stop, v1::AnnounceReply* reply) {
  v1::AnnounceRequest request;
  if (leaving) {
    request.mutable_worker()->set_id(worker_id_);
    request.set_leaving(true);
  } else {
    *request.mutable_worker() = options_.state();
    if (options_.modes != nullptr) options_.modes->Fill(request.mutable_worker());
    worker_id_ = request.worker().id();
    request.set_rejoining(announced_);
  }
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(deadline));
  const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
  return stub_->Announce(&context, request, reply);
}

void WorkerAnnouncer::TakeReply(const v1::AnnounceReply& reply) {
  options_.access.TakeRevoked(reply.revoked());
  if (options_.modes == nullptr || !reply.has_asked_mode()) return;
  options_.modes->Ask(reply.asked_mode(), reply.asked_by());
}

void WorkerAnnouncer::Run() {
  RetryPause retry(options_.random);
  while (!stop_.stop_requested()) {
    {
      std::lock_guard lock(mutex_);
      now_ = false;
    }
    v1::AnnounceReply reply;
    const grpc::Status status =
        AnnounceOnce(/*leaving=*/false, kCallDeadline, stop_.get_token(), &reply);
    if (stop_.stop_requested()) return;
    Note(status);
    absl::Duration pause;
    if (status.ok()) {
      announced_ = true;
      TakeReply(reply);
      retry.Reset();
      pause = std::clamp(absl::Milliseconds(reply.next_announce_ms()), absl::Milliseconds(1),
                         kLongestInterval);
    } else {
      pause = retry.Next();
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoMilliseconds(pause),
                      [this] { return now_ || stop_.stop_requested(); });
  }
}

// Logs changes only: an outage of an hour is two lines.
void WorkerAnnouncer::Note(const grpc::Status& status) {
  std::lock_guard lock(mutex_);
  if (status.ok()) {
    if (!connected_) LogInfo("announced to the tracker at {}", options_.tracker);
    last_error_.clear();
  } else if (connected_ || status.error_message() != last_error_) {
    LogWarn("the tracker at {} does not accept the announcement: {}; retrying", options_.tracker,
            status.error_message());
    last_error_ = status.error_message();
  }
  connected_ = status.ok();
  changed_.notify_all();
}

}  // namespace kiln
