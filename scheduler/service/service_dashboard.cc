// The service's call about pages: a way in for a browser.
#include "scheduler/service/service.h"

namespace kiln::scheduler {

grpc::Status SchedulerService::OpenDashboard(grpc::ServerContext* context,
                                             const v1::OpenDashboardRequest* request,
                                             v1::OpenDashboardReply* reply) {
  return Answer(*context, *request, [&]() -> Status {
    if (!open_dashboard_) {
      return FailedPrecondition(
          "this scheduler serves no pages: it was started with --http-port off; start it again "
          "without the flag");
    }
    KILN_ASSIGN_OR_RETURN(const std::optional<Identity> caller, admission_.Caller(*context));
    KILN_ASSIGN_OR_RETURN(*reply, open_dashboard_(caller));
    return OkStatus();
  });
}

}  // namespace kiln::scheduler
