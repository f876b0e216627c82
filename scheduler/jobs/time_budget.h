// Measures how long a job has had its device, in all its runs, and how much of its time budget is
// left.
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
  // `active_before_s` is the time that earlier runs had a device.
  explicit TimeBudget(double active_before_s, Clock& clock = Clock::Real())
      : clock_(clock), active_before_s_(active_before_s) {}

  // Notes that this run has its device.
  void Begin() { begun_s_ = clock_.MonotonicSeconds(); }
  double active_s() const;

  // The end of the job's use of its device, and the earlier end of its search: the time between
  // them is for the final race. Infinite without a time budget.
  struct Deadlines {
    double search_s = std::numeric_limits<double>::infinity();
    double final_race_s = std::numeric_limits<double>::infinity();
  };
  // Call after Begin.
  Deadlines DeadlinesOf(const v1::JobSpec& spec) const;

 private:
  Clock& clock_;
  const double active_before_s_;
  std::optional<double> begun_s_;
};

}  // namespace kiln::scheduler
