// Reads from a job's own records where its next run goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "scheduler/remeasure/elites.h"
#include "search/policies/policy.h"
#include "search/space/task.h"
#include "store/store.h"

namespace kiln::scheduler {

// Only trials that were measured for the target that the task has now. Costs of another device say
// nothing here, and its candidates may be tried again.
struct TaskHistory {
  std::vector<search::Observation> observations;  // in the order of the trials
  std::optional<double> best_cost_s;              // best of the trials that ran to their end
  // Elites among the trials that ran to their end, without artifacts.
  std::vector<Elite> elites;
};

struct JobHistory {
  size_t trials = 0;                     // number of trials that have a record
  uint32_t next_trial = 0;               // one more than the largest number of a trial
  std::vector<uint32_t> missing_trials;  // numbers below next_trial that have no record
  std::vector<TaskHistory> tasks;
};

// `records` has all records of the job, in the order of the trials. Leaves out records whose steps
// do not parse, and logs that once. Pure otherwise.
JobHistory HistoryOf(std::string_view job_id, std::span<const store::Record> records,
                     std::span<const search::Task> tasks);

}  // namespace kiln::scheduler
