#include "scheduler/jobs/time_budget.h"

#include <algorithm>

#include "base/status.h"
#include "scheduler/remeasure/races.h"

namespace kiln::scheduler {
namespace {

// Estimates the time that the final race may take from a time budget, at most a fifth of it. The
// race ends in time in any case.
double FinalRaceTime(const v1::JobSpec& spec) {
  constexpr double kMaxShareOfBudget = 0.2;
  constexpr double kOverhead_s = 0.05;  // for each turn: calls, checks
  constexpr int kTurns = 5;
  constexpr int kTurnsAfterIdleReadings = 1;  // most is known by then
  const v1::TuneOptions& options = spec.options();
  v1::MeasureOptions turn = options.measure();
  SetRemeasurement(options.trials(), turn);
  const double turn_s = kOverhead_s + 1e-3 * turn.min_repeat_ms() * turn.repeat();
  const bool idle_readings = options.measure().idle_ms() > 0 && !options.lock_step();
  // Among alternatives of a task, hardly any but the fastest one is raced.
  const auto tasks = std::ranges::count_if(
      spec.tasks(), [](const v1::TaskSpec& task) { return !task.has_alternative_of(); });
  const double finalists = std::max(0, options.finalists()) * static_cast<double>(tasks);
  return std::min(kMaxShareOfBudget * options.time_budget_s(),
                  turn_s * finalists * (idle_readings ? kTurnsAfterIdleReadings : kTurns));
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
