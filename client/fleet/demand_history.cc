#include "client/fleet/demand_history.h"

#include <algorithm>

namespace kiln::client {

void DemandHistory::Add(double now_s, int slots) {
  looks_.push_back({now_s, slots});
  // The first look that is old enough stays: it says what was wanted when the window began.
  while (looks_.size() > 1 && looks_[1].at_s <= now_s - longest_s_) looks_.pop_front();
}

bool DemandHistory::Covers(double window_s) const {
  return !looks_.empty() && looks_.front().at_s <= looks_.back().at_s - window_s;
}

int DemandHistory::Least(double window_s) const {
  if (!Covers(window_s)) return 0;
  int least = looks_.back().slots;
  for (const Look& look : looks_) {
    if (look.at_s >= looks_.back().at_s - window_s) least = std::min(least, look.slots);
  }
  return least;
}

int DemandHistory::Greatest(double window_s, int unknown) const {
  if (!Covers(window_s)) return unknown;
  int greatest = looks_.back().slots;
  for (const Look& look : looks_) {
    if (look.at_s >= looks_.back().at_s - window_s) greatest = std::max(greatest, look.slots);
  }
  return greatest;
}

}  // namespace kiln::client
