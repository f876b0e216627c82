#include "scheduler/messages.h"

#include <algorithm>
#include <cmath>

namespace kiln::scheduler {
namespace {

constexpr size_t kMessageBytes = 1024;

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Why the store would refuse the result; "" when it does not.
std::string Defect(const v1::TrialResult& result) {
  const int error = result.error();
  if (error < 0 || error >= store::kNumErrorKinds) {
    return fmt::format("the runner answered error kind {}, which is unknown", error);
  }
  if (error != store::kNoError) return "";
  if (result.costs_s().empty()) return "the runner answered a success without costs";
  for (const double cost : result.costs_s()) {
    if (!std::isfinite(cost) || cost <= 0) {
      return fmt::format("the runner answered a cost of {} s", cost);
    }
  }
  return "";
}

v1::JobState StateMessage(store::JobState state) { return static_cast<v1::JobState>(state); }

double ElapsedSeconds(const store::JobRow& job, int64_t now_ms) {
  if (job.started_ms == 0) return 0;
  const int64_t end_ms = job.finished_ms != 0 ? job.finished_ms : now_ms;
  return 1e-3 * static_cast<double>(std::max<int64_t>(0, end_ms - job.started_ms));
}

// A task that the spec does not list, in a job that has no spec (imported records), is described
// by its row alone.
v1::TaskSpec SpecOf(const store::TaskRow& row) {
  v1::TaskSpec spec;
  spec.set_dag(row.dag);
  spec.set_target(row.target);
  spec.set_weight(row.weight);
  spec.set_description(row.description);
  if (row.alternative_of.has_value()) spec.set_alternative_of(*row.alternative_of);
  spec.set_form(row.form);
  spec.set_preparation(row.preparation);
  spec.set_network(row.network);
  return spec;
}

StatusOr<v1::TaskStatus> TaskMessage(store::Store& store, const store::TaskRow& row,
                                     const store::TrialCounts& counts) {
  v1::TaskStatus task;
  *task.mutable_spec() = SpecOf(row);
  task.set_workload_key(row.workload_key);
  task.set_flop_count(row.flop_count);
  const auto trials = counts.by_task.find(row.index);
  if (trials != counts.by_task.end()) task.set_trials(static_cast<uint32_t>(trials->second));
  task.set_reference_cost_s(row.reference_cost_s);
  KILN_ASSIGN_OR_RETURN(const auto best, store.BestOfJob(row.job_id, row.index));
  if (best.has_value()) {
    task.set_best_cost_s(store::Cost(*best));
    task.set_best_record_id(best->id);
  }
  return task;
}

}  // namespace

store::HardwareParams HardwareRow(const v1::HardwareParams& h) {
  return {h.num_cores(),
          h.vector_unit_bytes(),
          h.cache_line_bytes(),
          h.max_shared_memory_per_block_bytes(),
          h.max_local_memory_per_block_bytes(),
          h.max_threads_per_block(),
          h.max_vthread_extent(),
          h.warp_size()};
}

v1::HardwareParams HardwareMessage(const store::HardwareParams& row) {
  v1::HardwareParams h;
  h.set_num_cores(static_cast<int32_t>(row[0]));
  h.set_vector_unit_bytes(static_cast<int32_t>(row[1]));
  h.set_cache_line_bytes(static_cast<int32_t>(row[2]));
  h.set_max_shared_memory_per_block_bytes(row[3]);
  h.set_max_local_memory_per_block_bytes(row[4]);
  h.set_max_threads_per_block(static_cast<int32_t>(row[5]));
  h.set_max_vthread_extent(static_cast<int32_t>(row[6]));
  h.set_warp_size(static_cast<int32_t>(row[7]));
  return h;
}

v1::Record RecordMessage(const store::Record& r) {
  v1::Record m;
  m.set_id(r.id);
  m.set_job_id(r.job_id);
  m.set_task_index(r.task_index);
  m.set_workload_key(r.workload_key);
  m.set_dag(r.dag);
  m.set_target(r.target);
  *m.mutable_hardware() = HardwareMessage(r.hardware);
  m.set_steps(r.steps);
  m.set_trial(r.trial);
  m.set_flop_count(r.flop_count);
  m.set_origin(r.origin);
  m.set_score(r.score);
  v1::TrialResult& result = *m.mutable_result();
  for (const double cost : r.costs_s) result.add_costs_s(cost);
  result.set_error(static_cast<v1::ErrorKind>(r.error));
  result.set_message(r.message);
  result.set_build_s(r.build_s);
  result.set_run_s(r.run_s);
  result.set_timestamp_s(r.timestamp_s);
  result.set_device(r.device);
  result.set_builder(r.builder);
  result.set_runner(r.runner);
  result.set_stopped_early(r.stopped_early);
  result.set_max_error(r.max_error);
  for (const double cost : r.final_costs_s) result.add_final_costs_s(cost);
  result.set_confidence_s(r.confidence_s);
  result.set_final_readings(r.final_readings);
  result.set_final_run_s(r.final_run_s);
  result.set_final_device(r.final_device);
  if (r.times.empty() || !result.mutable_times()->ParseFromString(r.times)) result.clear_times();
  return m;
}

v1::Round RoundMessage(const store::RoundRow& row) {
  v1::Round m;
  m.set_number(row.number);
  m.set_task_index(row.task_index);
  m.set_elapsed_s(row.elapsed_s);
  m.set_trials(row.trials);
  if (std::isfinite(row.total_latency_s)) m.set_total_latency_s(row.total_latency_s);
  for (const double best_s : row.best_s) m.add_best_s(best_s);
  m.set_search_s(row.search_s);
  m.set_report(row.report);
  return m;
}

std::string CutText(std::string_view text, size_t max_bytes) {
  constexpr std::string_view kGap = " ... ";
  if (text.size() <= max_bytes) return std::string(text);
  size_t head = (max_bytes - std::min(max_bytes, kGap.size())) / 2;
  size_t tail = text.size() - head;
  while (head > 0 && IsContinuation(text[head])) --head;
  while (tail < text.size() && IsContinuation(text[tail])) ++tail;
  return fmt::format("{}{}{}", text.substr(0, head), kGap, text.substr(tail));
}

void SetResult(const v1::TrialResult& result, store::Record& record) {
  const std::string defect = Defect(result);
  record.error = defect.empty() ? static_cast<int>(result.error()) : int{v1::UNKNOWN_ERROR};
  record.message = CutText(defect.empty() ? result.message() : defect, kMessageBytes);
  record.costs_s.clear();
  if (record.error == store::kNoError) {
    record.costs_s.assign(result.costs_s().begin(), result.costs_s().end());
  }
  record.run_s = result.run_s();
  if (result.timestamp_s() != 0) record.timestamp_s = result.timestamp_s();
  if (!result.device().empty()) record.device = result.device();
  if (!result.runner().empty()) record.runner = result.runner();
  record.stopped_early = result.stopped_early();
  record.max_error = result.max_error();
  record.times = result.times().SerializeAsString();
}

StatusOr<v1::JobStatus> StatusMessage(store::Store& store, const store::JobRow& job,
                                      const LiveStatus& live, int64_t now_ms) {
  v1::JobStatus status;
  status.set_id(job.id);
  if (!status.mutable_spec()->ParseFromString(job.spec)) {
    return DataLoss("the spec of job {} in the database is damaged", job.id);
  }
  if (job.spec.empty()) {
    status.mutable_spec()->set_name(job.name);
    status.mutable_spec()->set_user(job.user);
  }
  status.set_state(StateMessage(job.state));
  status.set_message(job.message);
  status.set_elapsed_s(ElapsedSeconds(job, now_ms));
  status.set_created_s(job.created_ms / 1000);
  if (job.state == store::JobState::kRunning && live.waiting_for_workers) {
    status.set_waiting_for_workers(1);
    if (status.message().empty()) status.set_message(live.obstacle);
  }
  status.set_device(live.device);
  status.set_phase(live.phase);
  status.set_next_task(live.next_task);
  status.set_busy_share_last_minute(live.busy.busy_share);
  status.set_leaders_share_last_minute(live.busy.leaders_share);
  status.set_trials_per_s_last_minute(live.busy.trials_per_s);
  KILN_ASSIGN_OR_RETURN(const store::TrialCounts counts, store.CountTrials(job.id));
  status.set_devices(static_cast<uint32_t>(counts.runners));
  const double device_s = status.elapsed_s() * static_cast<double>(counts.runners);
  if (device_s > 0) {
    status.set_busy_share(std::min(1.0, (counts.run_s + counts.final_run_s) / device_s));
    status.set_leaders_share(std::min(1.0, counts.final_run_s / device_s));
  }
  status.set_trials_done(static_cast<uint32_t>(counts.total));
  for (int kind = 1; kind < store::kNumErrorKinds; ++kind) {
    if (counts.by_error[kind] == 0) continue;
    (*status.mutable_error_counts())[kind] = static_cast<uint32_t>(counts.by_error[kind]);
  }
  KILN_ASSIGN_OR_RETURN(const auto tasks, store.TasksOfJob(job.id));
  for (const store::TaskRow& row : tasks) {
    v1::TaskStatus& task = *status.add_tasks();
    KILN_ASSIGN_OR_RETURN(task, TaskMessage(store, row, counts));
    if (row.index >= live.known.size()) continue;
    const LiveStatus::Known& known = live.known[row.index];
    task.set_known_states(known.states);
    task.set_known_cost_s(known.best_cost_s);
    task.set_known_record_id(known.best_record_id);
  }
  if (status.device().empty() && !status.tasks().empty() && status.tasks(0).best_record_id() != 0) {
    KILN_ASSIGN_OR_RETURN(const auto record, store.GetRecord(status.tasks(0).best_record_id()));
    status.set_device(record.device);
  }
  return status;
}

void DropDagTexts(v1::JobStatus& status) {
  for (v1::TaskSpec& task : *status.mutable_spec()->mutable_tasks()) task.clear_dag();
  for (v1::TaskStatus& task : *status.mutable_tasks()) task.mutable_spec()->clear_dag();
}

}  // namespace kiln::scheduler
