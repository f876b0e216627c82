#include "search/choice/known_records.h"

#include <utility>

#include "search/choice/workload_distance.h"

namespace kiln::search {

void ComputationsByHash::Add(KnownComputation computation) {
  if (computation.id.empty() || by_id_.contains(computation.id)) return;
  ids_.emplace(WorkloadHash(computation.key), computation.id);
  std::string id = computation.id;
  by_id_.emplace(std::move(id), std::move(computation));
}

std::vector<KnownComputation> ComputationsByHash::WithHash(std::string_view hash) const {
  std::vector<KnownComputation> found;
  const auto [begin, end] = ids_.equal_range(hash);
  for (auto it = begin; it != end; ++it) found.push_back(by_id_.at(it->second));
  return found;
}

StatusOr<std::vector<store::Record>> StoreRecords::Best(const store::WorkloadRef& workload) {
  return store_.BestRecords(workload, "");
}

StatusOr<std::vector<KnownComputation>> StoreRecords::WithHash(std::string_view hash) {
  if (!tuned_.has_value()) {
    ComputationsByHash tuned;
    KILN_ASSIGN_OR_RETURN(const auto jobs, store_.ListJobs(std::nullopt));
    for (const store::JobRow& job : jobs) {
      KILN_ASSIGN_OR_RETURN(const auto tasks, store_.TasksOfJob(job.id));
      for (const store::TaskRow& task : tasks)
        tuned.Add({task.workload_id, task.workload_key, task.description});
    }
    tuned_ = std::move(tuned);
  }
  return tuned_->WithHash(hash);
}

StatusOr<std::vector<store::PinnedSchedule>> StoreRecords::Set(const std::string& workload_id) {
  return store_.PinnedSchedules(workload_id);
}

Status StoreRecords::Visit(const std::string& workload_id,
                           const std::function<Status(const store::Record&)>& visit) {
  store::RecordFilter filter;
  filter.workload.id = workload_id;
  filter.include_errors = true;
  return store_.ForEachRecord(filter, visit);
}

}  // namespace kiln::search
