// How long a job has had its device, in all its runs, and what that leaves of its time budget.
//
// Times are Clock::MonotonicSeconds. Belongs to one thread.
#pragma once

#include <limits>
#include <optional>

#include "base/clock.h"
#include "proto/scheduler.pb.h"

namespace kiln::scheduler {

class TimeBudget {
 public:
  // `active_before_s`: in earlier runs.
  explicit TimeBudget(double active_before_s, Clock& clock = Clock::Real())
      : clock_(clock), active_before_s_(active_before_s) {}

  // This run has its device.
  void Begin() { begun_s_ = clock_.MonotonicSeconds(); }
  double active_s() const;

  // Until when the job may use its device, and of that the search: the rest is for the final race.
  // Infinite without a time budget.
  struct Deadlines {
    double search_s = std::numeric_limits<double>::infinity();
    double final_race_s = std::numeric_limits<double>::infinity();
  };
  // After Begin.
  Deadlines DeadlinesOf(const v1::JobSpec& spec) const;

 private:
  Clock& clock_;
  const double active_before_s_;
  std::optional<double> begun_s_;
};

}  // namespace kiln::scheduler
