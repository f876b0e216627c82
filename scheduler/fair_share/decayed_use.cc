#include "scheduler/fair_share/decayed_use.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kiln::scheduler {

void DecayedUse::Restore(double device_s, double at_s) {
  device_s_ = std::max(0.0, device_s);
  at_s_ = at_s;
}

// The integral of the decay over the time in use is exact, so that it does not matter how often
// this is called.
void DecayedUse::Advance(double now_s, int devices) {
  const double passed_s = now_s - at_s_;
  if (passed_s <= 0) return;
  const double half_lives = passed_s / half_life_s_;
  device_s_ *= std::exp2(-half_lives);
  device_s_ +=
      devices * half_life_s_ / std::numbers::ln2 * -std::expm1(-half_lives * std::numbers::ln2);
  at_s_ = now_s;
}

}  // namespace kiln::scheduler
