#include "client/compile/archive_records.h"

#include <utility>

#include "store/wire/record_message.h"

namespace kiln::client {

StatusOr<std::vector<store::Record>> ArchiveRecords::Best(const store::WorkloadRef& workload) {
  v1::BestRequest request;
  request.set_workload_id(workload.id);
  request.mutable_workload_keys()->Add(workload.keys.begin(), workload.keys.end());
  KILN_ASSIGN_OR_RETURN(const std::vector<v1::Record> messages, archive_.Best(request));
  std::vector<store::Record> records;
  for (const v1::Record& message : messages) records.push_back(store::RecordOf(message));
  return records;
}

StatusOr<std::vector<search::KnownComputation>> ArchiveRecords::WithHash(std::string_view hash) {
  if (!tuned_.has_value()) {
    search::ComputationsByHash tuned;
    KILN_ASSIGN_OR_RETURN(const auto jobs, archive_.Jobs(std::nullopt));
    for (const v1::JobStatus& job : jobs) {
      for (const v1::TaskStatus& task : job.tasks())
        tuned.Add({task.workload_id(), task.workload_key(), task.spec().description()});
    }
    tuned_ = std::move(tuned);
  }
  return tuned_->WithHash(hash);
}

StatusOr<std::vector<store::PinnedSchedule>> ArchiveRecords::Set(const std::string& workload_id) {
  return archive_.PinnedSchedules(workload_id);
}

Status ArchiveRecords::Visit(const std::string& workload_id,
                             const std::function<Status(const store::Record&)>& visit) {
  v1::ListRecordsRequest request;
  request.set_workload_id(workload_id);
  request.set_include_errors(true);
  return archive_.VisitRecords(
      request, [&](const v1::Record& record) { return visit(store::RecordOf(record)); });
}

}  // namespace kiln::client
