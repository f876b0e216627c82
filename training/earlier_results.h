// The warm start of a job: results of earlier jobs that help it.
//
// Records of the same task, on the same device and for a target that means the same
// (compiler/target/meaning.h), are observed by the task's policy like results of its own, so they
// are never measured again. Records that were measured with rewritten layouts are left out. Records
// of other tasks of the same target, and of the same task on other devices, train the cost model
// that the job's policies share; each group is normalised by its own best.
//
// A scheduler that starts again after a crash calls the same function, so a resumed job knows what
// it knew before: nothing but records is kept.
//
// Cost: a large database must not delay a job, so the job learns from a part of the records: the
// best ones of each task, and others drawn at random, which are always the same ones.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "costmodel/cost_model.h"
#include "search/policies/policy.h"
#include "search/space/task.h"
#include "store/store.h"

namespace kiln::training {

struct EarlierResultsOptions {
  // At most so many records of a task of the job are observed. Only the hashes of its other records
  // are kept.
  uint32_t observed = 1000;
  // Samples of other tasks are taken from so many of the newest records of a target.
  uint32_t latest_records = 5000;
  // At most so many samples of other tasks, shared out evenly among them. 0: there is no model to
  // train.
  uint32_t samples = 1500;
  // When this is requested, the remaining records are left out.
  std::stop_token stop = {};
};

struct TaskResults {
  std::vector<search::Observation> observations;  // in the order in which they were measured
  std::vector<uint64_t> avoid;                    // hashes of further candidates that were measured
  // Hashes of all measured candidates. Filled in place of the two lists above if the policy has to
  // decide by chance; these candidates are not measured first again.
  std::vector<uint64_t> measured = {};
  struct Best {
    int64_t record_id = 0;
    double cost_s = 0;
  };
  // The fastest trial that ran to its end. Imported records do not count, as the device did not
  // measure them.
  std::optional<Best> best;
};

struct EarlierResults {
  std::vector<TaskResults> of_tasks;  // one for each task
  std::vector<costmodel::Sample> of_others;
};

// Returns the measured points of a hand-written kernel from earlier jobs, for the task's policy to
// observe. The points belong to the same kernel (the task's computation bears its digest), whatever
// lists of values the kernel had at that time.
StatusOr<TaskResults> GatherKernelPoints(store::Store& store, std::string_view job_id,
                                         const search::Task& task, std::string_view device);

// Tells whether the other tasks teach a model enough to rank a task that it has no results of. A
// model of few workloads ranks worse than a model that has learned nothing.
bool CanRankNewTasks(const EarlierResults& results);

// Leaves out the records of `job_id` itself. `device` is a name as records have it; "" is the same
// as any. Leaves out records that no longer parse, replay or lower, instead of failing: the
// database may be old, or have schedules beyond what is allowed. The log says once how many do not
// parse. Also leaves out trials that failed because of the workers and not of the candidate.
StatusOr<EarlierResults> GatherEarlierResults(store::Store& store, std::string_view job_id,
                                              std::span<const search::Task> tasks,
                                              std::string_view device, ThreadPool& pool,
                                              const EarlierResultsOptions& options = {});

}  // namespace kiln::training
