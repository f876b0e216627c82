// Reads the results of a task of another job, while that job runs.
//
// Belongs to one thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "search/policies/policy.h"
#include "search/space/task.h"
#include "store/store.h"

namespace kiln::scheduler {

class JobResults {
 public:
  // Reads the trials of the task of `job_id` that has this computation and target.
  JobResults(std::string job_id, std::string workload_id, std::string target)
      : job_id_(std::move(job_id)),
        workload_id_(std::move(workload_id)),
        target_(std::move(target)) {}

  struct Result {
    search::Observation observation;
    bool stopped_early = false;
  };
  // Returns the results on such a device that were added since the last call. Leaves out trials
  // that failed because of a worker, and records whose steps do not parse. Cost: reads the records
  // of all tasks of the job from the first trial on whose result has not come.
  StatusOr<std::vector<Result>> ReadNew(store::Store& store, std::string_view device);

  const std::string& job_id() const { return job_id_; }

 private:
  const std::string job_id_, workload_id_, target_;
  uint32_t next_ = 0;              // the first trial without a result
  std::set<uint32_t> later_ = {};  // later trials whose results have come
};

}  // namespace kiln::scheduler
