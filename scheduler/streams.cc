#include "scheduler/streams.h"

#include <grpc/grpc.h>

#include <chrono>
#include <string>

namespace kiln::scheduler {
namespace {

constexpr int kLooksWithinLimit = 4;

}  // namespace

Streams::Streams(const Options& options)
    : options_(options), thread_([this](const std::stop_token& stop) { Look(stop); }) {}

Streams::~Streams() = default;

StatusOr<Streams::Stream> Streams::Open(grpc::ServerContext& context) {
  std::lock_guard lock(mutex_);
  if (static_cast<int>(calls_.size()) >= options_.most) {
    return ResourceExhausted("{} streams are open, no more are taken; close some, or try again",
                             calls_.size());
  }
  calls_.push_back({&context, absl::InfiniteFuture()});
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
  const auto pause = absl::ToChronoMilliseconds(options_.standstill / kLooksWithinLimit);
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); })) {
    EndThoseThatStandStill();
  }
}

void Streams::EndThoseThatStandStill() {
  const std::string why =
      fmt::format("the client neither sent nor took anything for {} s, which is the limit",
                  absl::ToInt64Seconds(options_.standstill));
  for (Call& call : calls_) {
    if (absl::Now() - call.waits_since < options_.standstill) continue;
    // TryCancel would not say why.
    grpc_call_cancel_with_status(call.context->c_call(), GRPC_STATUS_DEADLINE_EXCEEDED, why.c_str(),
                                 nullptr);
  }
}

}  // namespace kiln::scheduler
