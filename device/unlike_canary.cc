#include "device/unlike_canary.h"

#include <algorithm>
#include <cmath>

namespace kiln::device {

double UsualCanary(std::span<const double> canaries_s) {
  std::vector<double> timed;
  for (const double canary_s : canaries_s) {
    if (canary_s > 0) timed.push_back(canary_s);
  }
  if (timed.empty()) return 0;
  std::ranges::sort(timed);
  return timed[(timed.size() - 1) / 2];
}

std::vector<bool> UnlikeCanaries(std::span<const double> canaries_s, double share) {
  const double usual_s = UsualCanary(canaries_s);
  std::vector<bool> unlike;
  for (const double canary_s : canaries_s)
    unlike.push_back(canary_s > 0 && std::abs(canary_s - usual_s) > share * usual_s);
  return unlike;
}

}  // namespace kiln::device
