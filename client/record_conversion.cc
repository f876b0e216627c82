#include "client/record_conversion.h"

#include <algorithm>

namespace kiln::client {
namespace {

v1::HardwareParams HardwareToProto(const store::HardwareParams& values) {
  v1::HardwareParams hardware;
  hardware.set_num_cores(static_cast<int32_t>(values[0]));
  hardware.set_vector_unit_bytes(static_cast<int32_t>(values[1]));
  hardware.set_cache_line_bytes(static_cast<int32_t>(values[2]));
  hardware.set_max_shared_memory_per_block_bytes(values[3]);
  hardware.set_max_local_memory_per_block_bytes(values[4]);
  hardware.set_max_threads_per_block(static_cast<int32_t>(values[5]));
  hardware.set_max_vthread_extent(static_cast<int32_t>(values[6]));
  hardware.set_warp_size(static_cast<int32_t>(values[7]));
  return hardware;
}

store::HardwareParams HardwareFromProto(const v1::HardwareParams& hardware) {
  return {hardware.num_cores(),
          hardware.vector_unit_bytes(),
          hardware.cache_line_bytes(),
          hardware.max_shared_memory_per_block_bytes(),
          hardware.max_local_memory_per_block_bytes(),
          hardware.max_threads_per_block(),
          hardware.max_vthread_extent(),
          hardware.warp_size()};
}

StatusOr<v1::TaskStatus> TaskStatusFromStore(store::Store& store, const store::TaskRow& row,
                                             const store::TrialCounts& counts) {
  v1::TaskStatus task;
  v1::TaskSpec& spec = *task.mutable_spec();
  spec.set_dag(row.dag);
  spec.set_target(row.target);
  spec.set_weight(row.weight);
  spec.set_description(row.description);
  if (row.alternative_of.has_value()) spec.set_alternative_of(*row.alternative_of);
  spec.set_form(row.form);
  spec.set_preparation(row.preparation);
  spec.set_network(row.network);
  task.set_workload_key(row.workload_key);
  task.set_flop_count(row.flop_count);
  task.set_reference_cost_s(row.reference_cost_s);
  const auto trials = counts.by_task.find(row.index);
  if (trials != counts.by_task.end()) task.set_trials(static_cast<uint32_t>(trials->second));
  KILN_ASSIGN_OR_RETURN(const auto best, store.BestOfJob(row.job_id, row.index));
  if (best.has_value()) {
    task.set_best_cost_s(store::Cost(*best));
    task.set_best_record_id(best->id);
  }
  return task;
}

}  // namespace

v1::Record ToProto(const store::Record& record) {
  v1::Record out;
  out.set_id(record.id);
  out.set_job_id(record.job_id);
  out.set_task_index(record.task_index);
  out.set_trial(record.trial);
  out.set_workload_key(record.workload_key);
  out.set_dag(record.dag);
  out.set_target(record.target);
  *out.mutable_hardware() = HardwareToProto(record.hardware);
  out.set_steps(record.steps);
  out.set_flop_count(record.flop_count);
  out.set_origin(record.origin);
  out.set_score(record.score);
  v1::TrialResult& result = *out.mutable_result();
  result.mutable_costs_s()->Add(record.costs_s.begin(), record.costs_s.end());
  result.set_error(static_cast<v1::ErrorKind>(record.error));
  result.set_message(record.message);
  result.set_build_s(record.build_s);
  result.set_run_s(record.run_s);
  result.set_timestamp_s(record.timestamp_s);
  result.set_device(record.device);
  result.set_builder(record.builder);
  result.set_runner(record.runner);
  result.set_stopped_early(record.stopped_early);
  result.set_max_error(record.max_error);
  result.mutable_final_costs_s()->Add(record.final_costs_s.begin(), record.final_costs_s.end());
  result.set_confidence_s(record.confidence_s);
  result.set_final_readings(record.final_readings);
  result.set_final_run_s(record.final_run_s);
  result.set_final_device(record.final_device);
  if (record.times.empty() || !result.mutable_times()->ParseFromString(record.times)) {
    result.clear_times();
  }
  return out;
}

store::Record FromProto(const v1::Record& record) {
  const v1::TrialResult& result = record.result();
  store::Record out;
  out.id = record.id();
  out.job_id = record.job_id();
  out.task_index = record.task_index();
  out.trial = record.trial();
  out.workload_key = record.workload_key();
  out.dag = record.dag();
  out.target = record.target();
  out.hardware = HardwareFromProto(record.hardware());
  out.steps = record.steps();
  out.costs_s.assign(result.costs_s().begin(), result.costs_s().end());
  out.error = result.error();
  out.message = result.message();
  out.build_s = result.build_s();
  out.run_s = result.run_s();
  out.timestamp_s = result.timestamp_s();
  out.device = result.device();
  out.builder = result.builder();
  out.runner = result.runner();
  out.stopped_early = result.stopped_early();
  out.max_error = result.max_error();
  out.flop_count = record.flop_count();
  out.origin = record.origin();
  out.score = record.score();
  out.final_costs_s.assign(result.final_costs_s().begin(), result.final_costs_s().end());
  out.confidence_s = result.confidence_s();
  out.final_readings = result.final_readings();
  out.final_run_s = result.final_run_s();
  out.final_device = result.final_device();
  out.times = result.times().SerializeAsString();
  return out;
}

StatusOr<v1::JobStatus> JobStatusFromStore(store::Store& store, const store::JobRow& job,
                                           int64_t now_ms) {
  v1::JobStatus status;
  status.set_id(job.id);
  if (!status.mutable_spec()->ParseFromString(job.spec)) status.mutable_spec()->Clear();
  status.mutable_spec()->set_name(job.name);
  status.mutable_spec()->set_user(job.user);
  status.mutable_spec()->set_priority(job.priority);
  status.set_state(static_cast<v1::JobState>(job.state));
  status.set_message(job.message);
  status.set_created_s(job.created_ms / 1000);
  if (job.started_ms > 0) {
    const int64_t end_ms = job.finished_ms > 0 ? job.finished_ms : now_ms;
    status.set_elapsed_s(1e-3 * static_cast<double>(end_ms - job.started_ms));
  }
  KILN_ASSIGN_OR_RETURN(const store::TrialCounts counts, store.CountTrials(job.id));
  status.set_trials_done(static_cast<uint32_t>(counts.total));
  status.set_devices(static_cast<uint32_t>(counts.runners));
  const double device_s = status.elapsed_s() * static_cast<double>(counts.runners);
  if (device_s > 0) {
    status.set_busy_share(std::min(1.0, (counts.run_s + counts.final_run_s) / device_s));
    status.set_leaders_share(std::min(1.0, counts.final_run_s / device_s));
  }
  for (uint32_t kind = 1; kind < counts.by_error.size(); ++kind) {
    if (counts.by_error[kind] == 0) continue;
    (*status.mutable_error_counts())[kind] = static_cast<uint32_t>(counts.by_error[kind]);
  }
  KILN_ASSIGN_OR_RETURN(const auto tasks, store.TasksOfJob(job.id));
  for (const store::TaskRow& row : tasks) {
    KILN_ASSIGN_OR_RETURN(*status.add_tasks(), TaskStatusFromStore(store, row, counts));
  }
  return status;
}

}  // namespace kiln::client
