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

StatusOr<Record> WithFinals(Record record, const Finals& finals) {
  record.final_run_s = finals.run_s;
  if (record.error != kNoError) return record;
  record.final_costs_s = finals.costs_s;
  record.confidence_s = finals.confidence_s;
  record.final_readings = finals.readings;
  record.final_device = finals.device;
  record.error = finals.error;
  record.message = finals.message;
  if (record.error != kNoError) record.costs_s.clear();
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
