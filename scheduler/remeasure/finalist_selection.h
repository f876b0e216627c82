// Selects the entries of the final race of a job's tasks: the fastest trials by their first
// readings. The schedule that was chosen without measuring is always added, unless its trial failed
// or was stopped early, and the unscheduled loops are added up to kUnscheduledMargin. A task that
// is much slower than the fastest of its alternatives has no race.
//
// A race may show that its winner is slower than the first reading of a trial that was not in it.
// Such trials are in the next final race, together with the winner, so the selection remembers who
// was in a race before.
//
// Belongs to one thread. Reads the job's records at each call.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "scheduler/remeasure/races.h"
#include "scheduler/values/job_spec.h"
#include "store/store.h"

namespace kiln::scheduler {

// The unscheduled loops are in the race if their reading is within this factor of the best one.
inline constexpr double kUnscheduledMargin = 2;

class FinalistSelection {
 public:
  // Job and store outlive this object.
  FinalistSelection(const CheckedJob& job, std::string job_id, store::Store& store)
      : job_(job), job_id_(std::move(job_id)), store_(store) {}

  // Returns a list for each task whose finalists are not known well enough yet. From now on these
  // finalists count as raced.
  StatusOr<std::vector<Finalists>> Next();

 private:
  using Best = std::vector<std::optional<store::Record>>;  // one for each task

  Finalists FinalistsOf(uint32_t task, std::span<const store::Record> records, const Best& best);
  // Tells whether the task's best trial is much slower than the best of its alternatives.
  bool IsOutclassed(uint32_t task, const Best& best) const;

  const CheckedJob& job_;
  const std::string job_id_;
  store::Store& store_;
  std::set<int64_t> raced_;  // record ids
};

}  // namespace kiln::scheduler
