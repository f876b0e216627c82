#include "client/silence_guard.h"

namespace kiln::client {

SilenceGuard::SilenceGuard(grpc::ClientContext& context, absl::Duration limit)
    : context_(context),
      limit_(limit),
      thread_([this](const std::stop_token& stop) { Watch(stop); }) {}

bool SilenceGuard::fired() const {
  std::lock_guard lock(mutex_);
  return fired_;
}

absl::Duration SilenceGuard::last_limit() const {
  std::lock_guard lock(mutex_);
  return last_limit_;
}

void SilenceGuard::Begin(absl::Duration limit) {
  std::lock_guard lock(mutex_);
  last_limit_ = limit;
  until_ = SteadyClock::now() + absl::ToChronoMilliseconds(limit);
  changed_.notify_all();
}

void SilenceGuard::End() {
  std::lock_guard lock(mutex_);
  until_.reset();
}

void SilenceGuard::Watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() && !fired_) {
    if (!until_.has_value()) {
      changed_.wait(lock, stop, [this] { return until_.has_value(); });
      continue;
    }
    const SteadyClock::time_point until = *until_;
    // The next exchange has a later limit, so that nothing needs to wake the thread for it.
    changed_.wait_until(lock, stop, until, [] { return false; });
    if (stop.stop_requested()) return;
    if (!until_.has_value() || SteadyClock::now() < *until_) continue;
    fired_ = true;
    context_.TryCancel();
  }
}

}  // namespace kiln::client
