#include "device/exclusive_phases.h"

#include <algorithm>

namespace kiln {

ExclusivePhases::ExclusivePhases(const Options& options, Clock& clock)
    : options_(options), clock_(clock) {}

bool ExclusivePhases::MayEnter(Kind kind) const {
  if (kind != turn_) return at_work_ == 0 && Now() - free_since_ >= options_.linger;
  const Waiting& other = waiting_[IndexOf(OtherThan(kind))];
  return other.count == 0 || Now() - std::max(other.since, turn_since_) < options_.length;
}

absl::Duration ExclusivePhases::Patience(Kind kind) const {
  if (kind == turn_ || at_work_ > 0) return absl::InfiniteDuration();
  return std::max(absl::ZeroDuration(), options_.linger - (Now() - free_since_));
}

ExclusivePhases::Hold ExclusivePhases::Enter(Kind kind, std::stop_token stop) {
  // The callback is made before the lock, because it runs here if stop was requested already.
  const std::stop_callback wake(stop, [this] {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  if (!MayEnter(kind)) {
    Waiting& waiting = waiting_[IndexOf(kind)];
    if (waiting.count++ == 0) waiting.since = Now();
    while (!stop.stop_requested() && !MayEnter(kind)) {
      const absl::Duration patience = Patience(kind);
      clock_.WaitFor(lock, changed_, patience, [&] {
        return stop.stop_requested() || MayEnter(kind) || Patience(kind) < patience;
      });
    }
    --waiting.count;
    changed_.notify_all();
  }
  if (stop.stop_requested()) return {};
  if (kind != turn_) {
    turn_ = kind;
    turn_since_ = Now();
    changed_.notify_all();
  }
  ++at_work_;
  return Hold(this);
}

void ExclusivePhases::Leave() {
  std::lock_guard lock(mutex_);
  if (--at_work_ > 0) return;
  free_since_ = Now();
  changed_.notify_all();
}

}  // namespace kiln
