#include "client/scheduler_context.h"

#include <fmt/format.h>

#include "client/service_call.h"
#include "compiler/dag/text.h"
#include "rpc/hardware_message.h"

namespace kiln::client {
namespace {

using search::ChoiceSource;

ChoiceSource SourceOf(v1::ScheduleSource source) {
  switch (source) {
    case v1::SCHEDULE_SET:
      return ChoiceSource::kSet;
    case v1::SCHEDULE_RECORD:
      return ChoiceSource::kRecord;
    case v1::SCHEDULE_COMPATIBLE:
      return ChoiceSource::kCompatible;
    case v1::SCHEDULE_SAMPLE:
      return ChoiceSource::kSample;
    default:
      return ChoiceSource::kNone;
  }
}

}  // namespace

StatusOr<search::Choice> SchedulerContext::Find(const search::Task& task) {
  v1::QueryScheduleRequest request;
  request.set_dag(dag::PrintDag(*task.dag));
  request.set_target(target::PrintTarget(task.target));
  *request.mutable_hardware() = HardwareMessage(task.hardware);
  request.set_include_compatible(options_.include_compatible);
  request.set_or_sample(options_.or_sample);
  request.set_seed(options_.seed);
  KILN_ASSIGN_OR_RETURN(const v1::QueryScheduleReply reply,
                        Call(*stub_, &v1::Scheduler::Stub::QuerySchedule, request));
  return search::Choice{
      .source = SourceOf(reply.source()),
      .steps = reply.steps(),
      .record = reply.record_id() == 0 ? "" : fmt::format("{}", reply.record_id()),
      .cost_s = reply.cost_s(),
      .hardware = HardwareParamsOf(reply.hardware()),
      .device = reply.device(),
      .reused_from = reply.reused_from(),
      .distance = reply.distance(),
      .origin = reply.origin(),
      .predicted_s = reply.predicted_s()};
}

Status SchedulerContext::Keep(const search::Task& task, std::string_view steps) {
  v1::SetScheduleRequest request;
  request.set_dag(dag::PrintDag(*task.dag));
  request.set_target(target::PrintTarget(task.target));
  request.set_steps(std::string(steps));
  return Call(*stub_, &v1::Scheduler::Stub::SetSchedule, request).status();
}

}  // namespace kiln::client
