// What earlier jobs measured that helps a new one.
//
// The same task, on the same device: observed by its policy like results of its own, so never
// measured again. Other tasks of the same target, and the same one on other devices: they train the
// cost model that the job's policies share, each normalised by its own best.
//
// A scheduler that starts again after a crash calls the same function, so a resumed job has what it
// knew: nothing but records is kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "costmodel/cost_model.h"
#include "search/policy.h"
#include "search/task.h"
#include "store/store.h"

namespace kiln::scheduler {

struct ExperienceOptions {
  // The newest so many records of a target train the model; features of 1,000 take about a second
  // of one core.
  uint32_t latest_records = 5000;
};

struct Experience {
  // By task, in the order they were measured.
  std::vector<std::vector<search::Observation>> of_tasks;
  std::vector<costmodel::Sample> of_others;
};

// `job_id`'s own records are left out. `device` as records name it; "" is the same as any. Records
// that no longer parse, replay or lower are left out: an old database is no reason to fail.
StatusOr<Experience> GatherExperience(store::Store& store, std::string_view job_id,
                                      std::span<const search::Task> tasks, std::string_view device,
                                      ThreadPool& pool, const ExperienceOptions& options = {});

}  // namespace kiln::scheduler
