#include "store/wire/job_message.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "store/task_results.h"

namespace kiln::store {
namespace {

double ElapsedSeconds(const JobRow& job, int64_t now_ms) {
  if (!job.started_ms.has_value()) return 0;
  const int64_t end_ms = job.finished_ms.value_or(now_ms);
  return 1e-3 * static_cast<double>(std::max<int64_t>(0, end_ms - *job.started_ms));
}

// Reads the row alone: a job of imported records has no spec that lists its tasks.
v1::TaskSpec TaskSpecOf(const TaskRow& row) {
  v1::TaskSpec spec;
  spec.set_dag(row.dag);
  spec.set_target(row.target);
  spec.set_weight(row.weight);
  spec.set_description(row.description);
  if (row.alternative_of.has_value()) spec.set_alternative_of(*row.alternative_of);
  spec.set_variant(row.variant);
  spec.set_preparation(row.preparation);
  spec.set_network(row.network);
  return spec;
}

v1::TaskStatus TaskWithoutResults(const TaskRow& row) {
  v1::TaskStatus task;
  *task.mutable_spec() = TaskSpecOf(row);
  task.set_workload_id(row.workload_id);
  task.set_workload_key(row.workload_key);
  task.set_flop_count(row.flop_count);
  return task;
}

StatusOr<v1::TaskStatus> TaskStatusMessage(TaskResults& results, const TaskRow& row,
                                           const TrialCounts& counts) {
  v1::TaskStatus task = TaskWithoutResults(row);
  const auto trials = counts.by_task.find(row.index);
  if (trials != counts.by_task.end()) task.set_trials(static_cast<uint32_t>(trials->second));
  KILN_ASSIGN_OR_RETURN(const auto best, results.Best(row));
  if (best.has_value()) {
    task.set_best_cost_s(Cost(*best));
    task.set_best_record_id(best->id);
  }
  KILN_ASSIGN_OR_RETURN(const auto unscheduled, results.Unscheduled(row));
  if (unscheduled.has_value()) {
    task.set_reference_cost_s(Cost(*unscheduled));
    task.set_reference_record_id(unscheduled->id);
    task.set_reference_message(unscheduled->message);
    if (unscheduled->stopped_early) task.set_reference_message("timed in one call");
  } else if (row.reference_cost_s.has_value() && best.has_value() && !best->sampled_outputs) {
    // The unscheduled loops were no candidate: only the run that made the reference outputs is
    // known.
    task.set_reference_cost_s(*row.reference_cost_s);
    task.set_reference_message("timed in one call, when the reference outputs were computed");
  }
  KILN_ASSIGN_OR_RETURN(const auto known, results.Known(row));
  task.set_known_states(row.known_trials);
  if (known.has_value()) {
    task.set_known_cost_s(Cost(*known));
    task.set_known_record_id(known->id);
  }
  return task;
}

// The status must have its elapsed time already.
void SetCounts(const TrialCounts& counts, v1::JobStatus& status) {
  status.set_trials_done(static_cast<uint32_t>(counts.total));
  status.set_devices(static_cast<uint32_t>(counts.runners));
  const double device_s = status.elapsed_s() * static_cast<double>(counts.runners);
  if (device_s > 0) {
    status.set_busy_share(std::min(1.0, (counts.run_s + counts.remeasured_run_s) / device_s));
    status.set_elites_share(std::min(1.0, counts.remeasured_run_s / device_s));
  }
  for (uint32_t kind = 1; kind < counts.by_error.size(); ++kind) {
    if (counts.by_error[kind] == 0) continue;
    (*status.mutable_error_counts())[kind] = static_cast<uint32_t>(counts.by_error[kind]);
  }
}

// The status has no tasks.
v1::JobStatus StatusOfRow(const JobRow& job, v1::JobSpec spec) {
  v1::JobStatus status;
  status.set_id(job.id);
  spec.set_name(job.name);
  spec.set_user(job.user);
  spec.set_priority(job.priority);
  *status.mutable_spec() = std::move(spec);
  status.set_state(static_cast<v1::JobState>(job.state));
  status.set_message(job.message);
  status.set_ending(job.state == JobState::kCancelled
                        ? v1::CANCELLED_BY_REQUEST
                        : static_cast<v1::JobEnding>(job.progress.ending));
  status.set_created_s(job.created_ms / 1000);
  return status;
}

}  // namespace

StatusOr<v1::JobStatus> JobStatusMessage(Store& store, const JobRow& job, v1::JobSpec spec,
                                         int64_t now_ms) {
  v1::JobStatus status = StatusOfRow(job, std::move(spec));
  status.set_elapsed_s(ElapsedSeconds(job, now_ms));
  KILN_ASSIGN_OR_RETURN(const TrialCounts counts, store.CountTrials(job.id));
  SetCounts(counts, status);
  KILN_ASSIGN_OR_RETURN(const auto tasks, store.TasksOfJob(job.id));
  TaskResults results(store);
  for (const TaskRow& row : tasks) {
    KILN_ASSIGN_OR_RETURN(*status.add_tasks(), TaskStatusMessage(results, row, counts));
  }
  return status;
}

StatusOr<v1::JobStatus> JobWithoutResultsMessage(Store& store, const JobRow& job,
                                                 v1::JobSpec spec) {
  v1::JobStatus status = StatusOfRow(job, std::move(spec));
  KILN_ASSIGN_OR_RETURN(const auto tasks, store.TasksOfJob(job.id));
  for (const TaskRow& row : tasks) *status.add_tasks() = TaskWithoutResults(row);
  return status;
}

v1::Round RoundMessage(const RoundRow& row) {
  v1::Round message;
  message.set_number(row.number);
  message.set_task_index(row.task_index);
  message.set_elapsed_s(row.elapsed_s);
  message.set_trials(row.trials);
  const double total_s = row.total_latency_s.value_or(0);
  if (std::isfinite(total_s)) message.set_total_latency_s(total_s);
  for (const std::optional<double>& best_s : row.best_s) message.add_best_s(best_s.value_or(0));
  message.set_search_s(row.search_s);
  message.set_report(row.report);
  return message;
}

}  // namespace kiln::store
