#include "scheduler/service/streams.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace kiln::scheduler {
namespace {

// "ipv4:10.0.0.7:4711" -> "ipv4:10.0.0.7".
std::string HostOf(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

}  // namespace

Streams::Streams(const Options& options)
    : options_(options), thread_([this](const std::stop_token& stop) { Look(stop); }) {}

Streams::~Streams() = default;

Status Streams::CheckRoom(std::string_view kind, std::string_view caller) const {
  int of_caller = 0, of_kind = 0;
  for (const Call& call : calls_) {
    if (call.caller != caller) continue;
    ++of_caller;
    if (call.kind == kind) ++of_kind;
  }
  if (of_kind >= options_.most_of_kind) {
    return ResourceExhausted(
        "{} streams of the kind '{}' are open from {}, no more are accepted from one host; close "
        "some, "
        "or try again",
        of_kind, kind, caller);
  }
  if (of_caller >= options_.most_of_caller) {
    return ResourceExhausted(
        "{} streams are open from {}, no more are accepted from one host; close some, or try again",
        of_caller, caller);
  }
  if (static_cast<int>(calls_.size()) >= options_.most) {
    return ResourceExhausted("{} streams are open, no more are accepted; close some, or try again",
                             calls_.size());
  }
  return OkStatus();
}

StatusOr<Streams::Stream> Streams::Open(grpc::ServerContext& context, std::string_view kind) {
  std::lock_guard lock(mutex_);
  std::string caller = HostOf(context.peer());
  KILN_RETURN_IF_ERROR(CheckRoom(kind, caller));
  calls_.push_back({&context, std::string(kind), std::move(caller), absl::InfiniteFuture()});
  return Stream(this, std::prev(calls_.end()));
}

void Streams::Close(std::list<Call>::iterator call) {
  std::lock_guard lock(mutex_);
  calls_.erase(call);
}

void Streams::NoteWait(std::list<Call>::iterator call, absl::Time since) {
  std::lock_guard lock(mutex_);
  call->waits_since = since;
}

void Streams::Look(const std::stop_token& stop) {
  absl::Duration pause = options_.standstill;
  std::unique_lock lock(mutex_);
  // A call that begins to wait after this look is looked at again before its time is over.
  while (!stopped_.wait_for(lock, stop, absl::ToChronoMilliseconds(pause),
                            [&] { return stop.stop_requested(); })) {
    pause = CancelStalledStreams();
  }
}

absl::Duration Streams::CancelStalledStreams() {
  const std::string why =
      fmt::format("the client neither sent nor took anything for {} s, which is the limit",
                  absl::ToInt64Seconds(options_.standstill));
  const absl::Time now = absl::Now();
  absl::Duration next = options_.standstill;
  for (Call& call : calls_) {
    const absl::Duration left = call.waits_since + options_.standstill - now;
    if (left > absl::ZeroDuration()) {
      next = std::min(next, left);
      continue;
    }
    // TryCancel would not tell the client why.
    grpc_call_cancel_with_status(call.context->c_call(), GRPC_STATUS_DEADLINE_EXCEEDED, why.c_str(),
                                 nullptr);
    call.waits_since = absl::InfiniteFuture();  // end the call only once
  }
  return next + absl::Milliseconds(1);
}

}  // namespace kiln::scheduler
