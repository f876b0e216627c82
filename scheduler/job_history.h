// What a job's own records say: where a run of it goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "scheduler/elites.h"
#include "search/policies/policy.h"
#include "search/space/task.h"
#include "store/store.h"

namespace kiln::scheduler {

// Of the trials that were measured for the target that the task has now. Costs of another device
// say nothing here, and its candidates may be tried again.
struct TaskHistory {
  std::vector<search::Observation> observations;  // by trial
  std::optional<double> best_cost_s;              // of those that ran to their end
  std::vector<Elite> elites;                      // likewise; without their artifacts
};

struct JobHistory {
  size_t trials = 0;                     // that have a record
  uint32_t next_trial = 0;               // one past the last one
  std::vector<uint32_t> missing_trials;  // before it, without a record
  std::vector<TaskHistory> tasks;
};

// `records`: all of the job, by trial. Those whose steps do not parse are left out, as the log says
// once. Pure but for that.
JobHistory HistoryOf(std::string_view job_id, std::span<const store::Record> records,
                     std::span<const search::Task> tasks);

}  // namespace kiln::scheduler
