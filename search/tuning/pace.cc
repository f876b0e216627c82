#include "search/tuning/pace.h"

#include <algorithm>
#include <cmath>

namespace kiln::search {
namespace {

// A round comes in time if so many trials are left beyond those that the measurer holds.
constexpr double kSpare = 4;
// Weight of the newest value in the average time between two results.
constexpr double kNewest = 0.1;

}  // namespace

void Pace::NoteResult(double now_s) {
  if (last_result_s_ > 0) {
    const double interval_s = now_s - last_result_s_;
    interval_s_ += (interval_s_ == 0 ? 1 : kNewest) * (interval_s - interval_s_);
  }
  last_result_s_ = now_s;
}

uint32_t Pace::Ahead(uint32_t round_trials) const {
  const double meanwhile = interval_s_ > 0 ? std::ceil(search_s_ / interval_s_) : 0;
  return static_cast<uint32_t>(std::min(meanwhile + kSpare, 2.0 * round_trials));
}

}  // namespace kiln::search
