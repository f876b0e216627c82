// The service's calls about the choice of a schedule for a computation.
#include "scheduler/service/choice_calls.h"
#include "scheduler/service/service.h"

namespace kiln::scheduler {

grpc::Status SchedulerService::QuerySchedule(grpc::ServerContext* context,
                                             const v1::QueryScheduleRequest* request,
                                             v1::QueryScheduleReply* reply) {
  return Answer(*context, *request, [&] {
    return RunLimited(*context, choices_, [&](const std::stop_token& gone) -> Status {
      KILN_ASSIGN_OR_RETURN(*reply, scheduler::QuerySchedule(store_, *request, gone));
      return OkStatus();
    });
  });
}

grpc::Status SchedulerService::SetSchedule(grpc::ServerContext* context,
                                           const v1::SetScheduleRequest* request,
                                           v1::SetScheduleReply* reply) {
  const Act act{.call = "SetSchedule", .subject = "target " + request->target()};
  return AnswerAudited(*context, *request, act, [&](Act&) {
    return RunLimited(*context, choices_, [&](const std::stop_token& gone) -> Status {
      KILN_ASSIGN_OR_RETURN(*reply, scheduler::SetSchedule(store_, *request, NowSeconds(), gone));
      return OkStatus();
    });
  });
}

grpc::Status SchedulerService::ListPinned(grpc::ServerContext* context,
                                          const v1::ListPinnedRequest* request,
                                          v1::ListPinnedReply* reply) {
  return Answer(*context, *request, [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(const auto pinned, store_.PinnedSchedules(request->workload_id()));
    for (const store::PinnedSchedule& one : pinned) *reply->add_schedules() = PinnedMessage(one);
    return OkStatus();
  });
}

grpc::Status SchedulerService::QueryConfig(grpc::ServerContext* context,
                                           const v1::QueryConfigRequest* request,
                                           v1::QueryConfigReply* reply) {
  return Answer(*context, *request, [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(*reply, scheduler::QueryConfig(store_, *request));
    return OkStatus();
  });
}

}  // namespace kiln::scheduler
