#include "store/wire/record_message.h"

#include <cmath>
#include <limits>

#include "rpc/hardware_message.h"
#include "rpc/trace_context.h"
#include "store/wire/kept_times.h"

namespace kiln::store {
namespace {

v1::TrialResult ResultMessage(const Record& record) {
  v1::TrialResult result;
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
  result.set_unchecked(record.unchecked);
  result.mutable_remeasured_costs_s()->Add(record.remeasured_costs_s.begin(),
                                           record.remeasured_costs_s.end());
  result.set_confidence_s(record.confidence_s.value_or(0));
  result.set_remeasurements(record.remeasurements);
  result.set_remeasured_run_s(record.remeasured_run_s);
  result.set_remeasured_device(record.remeasured_device);
  result.set_sampled_outputs(static_cast<uint64_t>(record.sampled_outputs.value_or(0)));
  result.set_measured_as(record.measured_as);
  ReadTimes(record.times, result);
  if (result.has_instants()) {
    result.set_trace_id(TraceOfTrial(record.job_id, record.trial).trace_id);
  }
  if (record.device_state.empty() ||
      !result.mutable_device_state()->ParseFromString(record.device_state)) {
    result.clear_device_state();
  }
  return result;
}

void TakeResult(const v1::TrialResult& result, Record& record) {
  record.costs_s.assign(result.costs_s().begin(), result.costs_s().end());
  record.error = result.error();
  record.message = result.message();
  record.build_s = result.build_s();
  record.run_s = result.run_s();
  record.timestamp_s = result.timestamp_s();
  record.device = result.device();
  record.builder = result.builder();
  record.runner = result.runner();
  record.stopped_early = result.stopped_early();
  record.max_error = result.max_error();
  record.unchecked = result.unchecked();
  record.remeasured_costs_s.assign(result.remeasured_costs_s().begin(),
                                   result.remeasured_costs_s().end());
  if (result.confidence_s() > 0) record.confidence_s = result.confidence_s();
  record.remeasurements = result.remeasurements();
  record.remeasured_run_s = result.remeasured_run_s();
  record.remeasured_device = result.remeasured_device();
  if (result.sampled_outputs() > 0) {
    record.sampled_outputs = static_cast<int64_t>(result.sampled_outputs());
  }
  record.times = PrintTimes(result.times(), result.instants());
  record.measured_as = result.measured_as();
  record.device_state = result.device_state().SerializeAsString();
}

template <typename Request>
WorkloadRef RefOf(const Request& request) {
  WorkloadRef workload = {.id = request.workload_id(), .keys = {}};
  for (const std::string& key : request.workload_keys()) {
    if (!key.empty()) workload.keys.push_back(key);
  }
  return workload;
}

}  // namespace

WorkloadRef WorkloadOf(const v1::BestRequest& message) { return RefOf(message); }

RecordFilter FilterOf(const v1::ListRecordsRequest& message) {
  RecordFilter filter;
  filter.job_id = message.job_id();
  filter.workload = RefOf(message);
  filter.target = message.target();
  filter.device = message.device();
  if (message.since_s() != 0) filter.since_s = message.since_s();
  if (message.until_s() != 0) filter.until_s = message.until_s();
  filter.key_prefix = message.key_prefix();
  filter.include_errors = message.include_errors();
  if (message.top() > 0) filter.top = message.top();
  return filter;
}

AutotvmFilter FilterOf(const v1::ListAutotvmRecordsRequest& message) {
  return {.task = message.task(),
          .target = message.target(),
          .include_errors = message.include_errors()};
}

v1::Record RecordMessage(const Record& record) {
  v1::Record message;
  message.set_id(record.id);
  message.set_job_id(record.job_id);
  message.set_task_index(record.task_index);
  message.set_trial(record.trial);
  message.set_workload_id(record.workload_id);
  message.set_workload_key(record.workload_key);
  message.set_dag(record.dag);
  message.set_target(record.target);
  *message.mutable_hardware() = HardwareMessage(HardwareParamsOf(record.hardware));
  message.set_device_model(record.device_model);
  message.set_steps(record.steps);
  message.set_flop_count(record.flop_count);
  message.set_origin(record.origin);
  message.set_score(record.score.value_or(std::numeric_limits<double>::quiet_NaN()));
  *message.mutable_result() = ResultMessage(record);
  message.set_target_host(record.target_host);
  message.set_layout_rewrite_option(record.layout_rewrite_option);
  message.mutable_input_names()->Add(record.input_names.begin(), record.input_names.end());
  message.set_mark(record.mark);
  message.mutable_equal_record_ids()->Add(record.equal_ids.begin(), record.equal_ids.end());
  return message;
}

Record RecordOf(const v1::Record& message) {
  Record record;
  record.id = message.id();
  record.job_id = message.job_id();
  record.task_index = message.task_index();
  record.trial = message.trial();
  record.workload_id = message.workload_id();
  record.workload_key = message.workload_key();
  record.dag = message.dag();
  record.target = message.target();
  record.hardware = HardwareRowOf(HardwareParamsOf(message.hardware()));
  record.device_model = message.device_model();
  record.steps = message.steps();
  record.flop_count = message.flop_count();
  record.origin = message.origin();
  if (!std::isnan(message.score())) record.score = message.score();
  TakeResult(message.result(), record);
  record.target_host = message.target_host();
  record.layout_rewrite_option = message.layout_rewrite_option();
  record.input_names.assign(message.input_names().begin(), message.input_names().end());
  record.mark = message.mark();
  record.equal_ids.assign(message.equal_record_ids().begin(), message.equal_record_ids().end());
  return record;
}

Rank RankOf(const v1::Record& message) {
  Record record;
  record.id = message.id();
  record.error = message.result().error();
  record.costs_s.assign(message.result().costs_s().begin(), message.result().costs_s().end());
  record.remeasured_costs_s.assign(message.result().remeasured_costs_s().begin(),
                                   message.result().remeasured_costs_s().end());
  record.stopped_early = message.result().stopped_early();
  record.measured_as = message.result().measured_as();
  return RankOf(record);
}

}  // namespace kiln::store
