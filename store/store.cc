#include "store/store.h"

namespace kiln::store {

Status Store::ForEachRecord(const RecordFilter& filter,
                            const std::function<Status(const Record&)>& visit) {
  constexpr uint32_t kPageSize = 256;
  RecordFilter rest = filter;
  while (true) {
    KILN_ASSIGN_OR_RETURN(const std::vector<Record> page, Page(rest, kPageSize));
    for (const Record& record : page) KILN_RETURN_IF_ERROR(visit(record));
    if (page.size() < kPageSize) return OkStatus();
    rest.after_id = page.back().id;
  }
}

StatusOr<TaskRow> TaskOfJob(const TaskRow& task, std::string_view job_id) {
  if (!task.job_id.empty() && task.job_id != job_id) {
    return InvalidArgument("task {} names job {}, expected {}", task.index, task.job_id, job_id);
  }
  TaskRow row = task;
  row.job_id = job_id;
  return row;
}

StatusOr<Record> WithFinals(Record record, std::span<const double> final_costs_s,
                            double confidence_s, int error, std::string_view message) {
  record.final_costs_s.assign(final_costs_s.begin(), final_costs_s.end());
  record.confidence_s = confidence_s;
  record.error = error;
  record.message = message;
  if (error != kNoError) record.costs_s.clear();
  KILN_RETURN_IF_ERROR(ValidateRecord(record));
  return record;
}

StatusOr<bool> ApplyJobState(JobRow& job, JobState state, std::string_view message,
                             int64_t now_ms) {
  if (IsFinal(job.state)) {
    if (state == job.state) return false;
    return FailedPrecondition("job {} is already {}, it cannot become {}", job.id,
                              JobStateName(job.state), JobStateName(state));
  }
  job.state = state;
  job.message = message;
  if (state == JobState::kRunning && job.started_ms == 0) job.started_ms = now_ms;
  if (IsFinal(state)) job.finished_ms = now_ms;
  return true;
}

}  // namespace kiln::store
