// Trials of jobs that have succeeded, which count as trials of a job that asks for the same tasks
// (shared_tasks.h).
//
// The trials of a task are those of one job, of the one that has most of them, on the model of
// device that the job has leased. If all tasks of the job are known so, all their trials count.
// Otherwise a known task counts for no more than its even share of the job's trials, since the
// others need the rest.
//
// While another job still tunes a task, the row of the task names that job, with no trials: its
// results count, and its trials do when it has succeeded.
//
// Free functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "scheduler/values/job_spec.h"
#include "search/space/task.h"
#include "store/store.h"

namespace kiln::scheduler {

struct KnownTask {
  std::string job_id;  // "": nothing of it is known
  uint32_t trials = 0;
};

// Returns what is known of each task. `tasks` are those of the leased device, whose model is
// `device`. Cost: reads all records of the tasks' computations for their target on such devices.
StatusOr<std::vector<KnownTask>> FindKnownTasks(const std::string& job_id, const CheckedJob& job,
                                                std::span<const search::Task> tasks,
                                                const std::string& device, store::Store& store);

// Returns an even share of the job's trials: so many known trials of a task are enough.
uint32_t ShareOfTask(const v1::JobSpec& spec);

// Keeps in the store what is known of those tasks of the job of which no trials were known before,
// and puts it into their rows.
Status KeepKnownTasks(std::span<const KnownTask> known, std::vector<store::TaskRow>& rows,
                      store::Store& store);

// Returns the number of trials of other jobs that count.
uint64_t KnownTrials(std::span<const store::TaskRow> rows);
// Returns "known: 64 trials of job 3f2a", or "" if no trials are known.
std::string KnownRemark(std::span<const store::TaskRow> rows);

}  // namespace kiln::scheduler
