// What earlier jobs measured that helps a new one: its warm start.
//
// The same task, on the same device and for a target that means the same
// (compiler/target/meaning.h): observed by its policy like results of its own, so never measured
// again. Not those that were measured with rewritten layouts. Other tasks of the same target, and
// the same one on other devices: they train the cost model that the job's policies share, each
// normalised by its own best.
//
// A scheduler that starts again after a crash calls the same function, so a resumed job has what it
// knew: nothing but records is kept.
//
// Cost: a large database must not delay a job, so a part of the records is learned from: of each
// task the best ones and some others by chance, always the same ones.
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

namespace kiln::scheduler {

struct ExperienceOptions {
  // Of a task of the job so many records are observed; of the others nothing but their identity is
  // kept.
  uint32_t observed = 1000;
  // Samples of others are taken from the newest so many records of a target.
  uint32_t latest_records = 5000;
  // At most so many, shared evenly by their tasks. 0: there is no model to train.
  uint32_t samples = 1500;
  // Requested: the rest is left out.
  std::stop_token stop = {};
};

struct TaskExperience {
  std::vector<search::Observation> observations;  // in the order they were measured
  std::vector<uint64_t> avoid;                    // measured too: hashes
  // Instead of both, where the policy is to decide by chance: hashes of what was measured, which is
  // not measured first again.
  std::vector<uint64_t> measured = {};
  struct Best {
    int64_t record_id = 0;
    double cost_s = 0;
  };
  // The fastest of all that ran to its end; an imported one has not been measured on the device.
  std::optional<Best> best;
};

struct Experience {
  std::vector<TaskExperience> of_tasks;  // by task
  std::vector<costmodel::Sample> of_others;
};

// The points of a hand-written kernel that earlier jobs measured, for the task's policy to observe:
// those of the same kernel (the task's computation bears its digest), whatever its lists of values
// were then.
StatusOr<TaskExperience> GatherKernelPoints(store::Store& store, std::string_view job_id,
                                            const search::Task& task, std::string_view device);

// Do the others teach a model enough to rank a task that it knows nothing of? One of few workloads
// ranks worse than one that learned nothing.
bool TeachesOthers(const Experience& experience);

// `job_id`'s own records are left out. `device` as records name it; "" is the same as any. Records
// that no longer parse, replay or lower are left out: an old database, or one with schedules beyond
// what is allowed, is no reason to fail; the log says once how many do not parse. So are trials
// that the workers failed, not the candidate.
StatusOr<Experience> GatherExperience(store::Store& store, std::string_view job_id,
                                      std::span<const search::Task> tasks, std::string_view device,
                                      ThreadPool& pool, const ExperienceOptions& options = {});

}  // namespace kiln::scheduler
