#include "scheduler/service/refusal_limit.h"

namespace kiln::scheduler {

bool RefusalLimit::Count(std::string_view user, absl::Time now) {
  auto found = windows_.find(user);
  if (found == windows_.end() && windows_.size() >= kMostUsers) found = windows_.find("");
  if (found == windows_.end()) {
    const std::string name(windows_.size() >= kMostUsers ? "" : user);
    found = windows_.emplace(name, Window{now, 0}).first;
  }
  return ++found->second.refusals <= kEach;
}

std::vector<RefusalLimit::Rest> RefusalLimit::TakeEnded(absl::Time now) {
  std::vector<Rest> rests;
  std::erase_if(windows_, [&](const auto& entry) {
    const auto& [user, window] = entry;
    // A clock that was set back ends a window, too.
    if (absl::AbsDuration(now - window.since) < kWindow) return false;
    if (window.refusals > kEach) rests.push_back({user, window.since, window.refusals - kEach});
    return true;
  });
  return rests;
}

}  // namespace kiln::scheduler
