#include "scheduler/service/choice_calls.h"

#include <memory>
#include <string>
#include <utility>

#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"
#include "device/measured_as.h"
#include "rpc/hardware_message.h"
#include "search/choice/config_context.h"
#include "search/choice/context.h"
#include "store/autotvm_log.h"

namespace kiln::scheduler {
namespace {

using search::ChoiceSource;

StatusOr<search::Task> TaskOf(const std::string& dag_text, const std::string& target_text,
                              const target::HardwareParams& hardware, const std::stop_token& stop) {
  KILN_ASSIGN_OR_RETURN(dag::DagPtr dag, dag::ParseDag(dag_text));
  KILN_ASSIGN_OR_RETURN(target::Target target, target::ParseTarget(target_text));
  std::string key = dag::WorkloadKey(*dag);
  search::Task task(std::move(dag), std::move(target), hardware, std::move(key));
  task.stop = stop;
  return task;
}

v1::ScheduleSource SourceMessage(ChoiceSource source) {
  switch (source) {
    case ChoiceSource::kNone:
      return v1::SCHEDULE_NONE;
    case ChoiceSource::kSet:
    case ChoiceSource::kFixed:
      return v1::SCHEDULE_SET;
    case ChoiceSource::kRecord:
      return v1::SCHEDULE_RECORD;
    case ChoiceSource::kCompatible:
      return v1::SCHEDULE_COMPATIBLE;
    case ChoiceSource::kSample:
      return v1::SCHEDULE_SAMPLE;
  }
  return v1::SCHEDULE_NONE;
}

v1::QueryScheduleReply MessageOf(const search::Choice& choice) {
  v1::QueryScheduleReply message;
  message.set_source(SourceMessage(choice.source));
  message.set_steps(choice.steps);
  if (!choice.record.empty()) message.set_record_id(std::stoll(choice.record));
  message.set_cost_s(choice.cost_s);
  message.set_distance(choice.distance);
  message.set_reused_from(choice.reused_from);
  *message.mutable_hardware() = HardwareMessage(choice.hardware);
  message.set_device(choice.device);
  message.set_origin(choice.origin);
  message.set_predicted_s(choice.predicted_s);
  return message;
}

}  // namespace

StatusOr<v1::QueryScheduleReply> QuerySchedule(store::Store& store,
                                               const v1::QueryScheduleRequest& request,
                                               const std::stop_token& stop) {
  KILN_RETURN_IF_ERROR(device::CheckDeployment(request.as_deployed()));
  KILN_ASSIGN_OR_RETURN(
      const search::Task task,
      TaskOf(request.dag(), request.target(), HardwareParamsOf(request.hardware()), stop));
  search::StoreRecords records(store);
  std::shared_ptr<search::Context> outer;
  if (request.or_sample()) outer = std::make_shared<search::SampledSchedule>(request.seed());
  search::HistoryOptions options{.include_compatible = request.include_compatible(),
                                 .as_deployed = request.as_deployed()};
  if (request.or_sample()) options.heuristic_seed = request.seed();
  search::HistoryBest context(records, options, std::move(outer));
  KILN_ASSIGN_OR_RETURN(const search::Choice choice, context.Query(task));
  return MessageOf(choice);
}

StatusOr<v1::SetScheduleReply> SetSchedule(store::Store& store,
                                           const v1::SetScheduleRequest& request, int64_t now_s,
                                           const std::stop_token& stop) {
  KILN_ASSIGN_OR_RETURN(const search::Task task, TaskOf(request.dag(), request.target(), {}, stop));
  const std::string id = dag::WorkloadId(*task.dag);
  const std::string target = target::PrintTarget(task.target);
  v1::SetScheduleReply reply;
  if (request.steps().empty()) {
    KILN_ASSIGN_OR_RETURN(const bool was_set, store.UnpinSchedule(id, target));
    reply.set_was_set(was_set);
    return reply;
  }
  KILN_RETURN_IF_ERROR(search::CheckApplies(task, request.steps()));
  KILN_ASSIGN_OR_RETURN(const auto before, store.PinnedSchedules(id));
  for (const store::PinnedSchedule& pinned : before)
    if (pinned.target == target) reply.set_was_set(true);
  KILN_RETURN_IF_ERROR(store.PinSchedule(
      {.workload_id = id, .target = target, .steps = request.steps(), .pinned_s = now_s}));
  return reply;
}

v1::PinnedSchedule PinnedMessage(const store::PinnedSchedule& pinned) {
  v1::PinnedSchedule message;
  message.set_workload_id(pinned.workload_id);
  message.set_target(pinned.target);
  message.set_steps(pinned.steps);
  message.set_pinned_s(pinned.pinned_s);
  return message;
}

StatusOr<v1::QueryConfigReply> QueryConfig(store::Store& store,
                                           const v1::QueryConfigRequest& request) {
  search::ConfigHistory history(store);
  KILN_ASSIGN_OR_RETURN(
      const auto record,
      history.Query({.target = request.target(),
                     .task = request.task(),
                     .args = request.args(),
                     .kwargs = request.kwargs().empty() ? "{}" : request.kwargs()}));
  v1::QueryConfigReply reply;
  if (record.has_value()) reply.set_line(store::PrintAutotvmLine(*record));
  return reply;
}

}  // namespace kiln::scheduler
