#include "scheduler/jobs/job_results.h"

namespace kiln::scheduler {

StatusOr<std::vector<JobResults::Result>> JobResults::ReadNew(store::Store& store,
                                                              std::string_view device) {
  KILN_ASSIGN_OR_RETURN(const std::vector<store::Record> records,
                        store.RecordsOfJob(job_id_, next_));
  std::vector<Result> results;
  for (const store::Record& record : records) {
    if (!later_.insert(record.trial).second) continue;
    const bool is_of_it = record.workload_id == workload_id_ && record.target == target_ &&
                          record.device == device && record.error != store::kUnknownError;
    if (!is_of_it) continue;
    auto candidate = search::ParseCandidate(record.steps);
    if (!candidate.ok()) continue;
    candidate->origin = record.origin;
    Result result;
    result.stopped_early = record.stopped_early;
    result.observation.candidate = *std::move(candidate);
    result.observation.valid = record.error == store::kNoError;
    if (result.observation.valid) result.observation.cost_s = store::Cost(record);
    result.observation.record = record.id;
    results.push_back(std::move(result));
  }
  while (later_.erase(next_) > 0) ++next_;
  return results;
}

}  // namespace kiln::scheduler
