#include "scheduler/time_budget.h"

#include <algorithm>

#include "base/status.h"

namespace kiln::scheduler {
namespace {

// What the last readings of the best may take, about, of a time budget; a fifth of it at most.
double FinalRaceTime(const v1::JobSpec& spec) {
  constexpr double kMostOfBudget = 0.2;
  constexpr double kTurn_s = 0.25;  // two readings, checks
  constexpr int kPhases = 5;
  const v1::TuneOptions& options = spec.options();
  const int finalists = std::max(0, options.finalists());
  return std::min(kMostOfBudget * options.time_budget_s(),
                  kTurn_s * kPhases * finalists * spec.tasks_size());
}

}  // namespace

double TimeBudget::active_s() const {
  if (!begun_s_.has_value()) return active_before_s_;
  return active_before_s_ + clock_.MonotonicSeconds() - *begun_s_;
}

TimeBudget::Deadlines TimeBudget::DeadlinesOf(const v1::JobSpec& spec) const {
  KILN_CHECK(begun_s_.has_value(), "the run has no device yet");
  const double budget_s = spec.options().time_budget_s();
  if (budget_s <= 0) return {};
  const double final_race_s = *begun_s_ + budget_s - active_before_s_;
  return {final_race_s - FinalRaceTime(spec), final_race_s};
}

}  // namespace kiln::scheduler
