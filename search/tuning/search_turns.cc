#include "search/tuning/search_turns.h"

#include <algorithm>

namespace kiln::search {

SearchTurns::SearchTurns(int at_once) : free_(std::max(1, at_once)) {}

SearchTurns::Turn SearchTurns::Take(const std::stop_token& stop) {
  Waiter self;
  // The callback is made before the lock, because it runs here if stop was requested already.
  const std::stop_callback wake(stop, [&] {
    std::lock_guard lock(mutex_);
    self.called.notify_all();
  });
  std::unique_lock lock(mutex_);
  if (stop.stop_requested()) return {};
  if (free_ > 0) {
    --free_;
    return Turn(this);
  }
  const auto place = waiting_.insert(waiting_.end(), &self);
  self.called.wait(lock, [&] { return self.has_turn || stop.stop_requested(); });
  if (!self.has_turn) {
    waiting_.erase(place);
    return {};
  }
  if (!stop.stop_requested()) return Turn(this);
  HandOn();
  return {};
}

int SearchTurns::waiting() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(waiting_.size());
}

void SearchTurns::Leave() {
  std::lock_guard lock(mutex_);
  HandOn();
}

void SearchTurns::HandOn() {
  if (waiting_.empty()) {
    ++free_;
    return;
  }
  Waiter& next = *waiting_.front();
  waiting_.pop_front();
  next.has_turn = true;
  next.called.notify_all();
}

}  // namespace kiln::search
