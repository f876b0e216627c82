// The service's call about workers: an operator's wish, which the tracker keeps.
#include "base/text/utf8.h"
#include "rpc/asked_by.h"
#include "rpc/worker_modes.h"
#include "scheduler/service/service.h"

namespace kiln::scheduler {
namespace {

// Returns "worker 5f1c: paused, the driver is updated".
std::string SubjectOf(std::string_view worker, v1::WorkerMode mode, const std::string& why) {
  return fmt::format("worker {}: {}{}{}", worker, ModeName(mode), why.empty() ? "" : ", ", why);
}

Status CheckLength(std::string_view what, std::string_view text, size_t most) {
  if (text.size() <= most) return OkStatus();
  return InvalidArgument("the {} has {} bytes, at most {} are kept; shorten it", what, text.size(),
                         most);
}

}  // namespace

StatusOr<v1::SetWorkerModeRequest> SchedulerService::Signed(
    const grpc::ServerContext& context, const v1::SetWorkerModeRequest& request) const {
  AskedBy asked = ParseAskedBy(OneLine(request.user()));
  KILN_ASSIGN_OR_RETURN(const std::optional<Identity> caller, admission_.Caller(context));
  if (caller.has_value()) asked.name = caller->name;
  if (asked.name.empty()) asked.name = "an operator";
  asked.at = clock_.Now();
  KILN_RETURN_IF_ERROR(CheckLength("operator's name", asked.name, kMostAskerBytes));
  KILN_RETURN_IF_ERROR(CheckLength("reason", asked.why, kMostWhyBytes));
  v1::SetWorkerModeRequest wish = request;
  wish.set_user(PrintAskedBy(asked));
  return wish;
}

grpc::Status SchedulerService::SetWorkerMode(grpc::ServerContext* context,
                                             const v1::SetWorkerModeRequest* request,
                                             v1::SetWorkerModeReply* reply) {
  const AskedBy told = ParseAskedBy(request->user());
  const Act asked{.call = "SetWorkerMode",
                  .subject = SubjectOf(request->worker(), request->mode(), told.why),
                  .told_user = told.name};
  return AnswerAudited(*context, *request, asked, [&](Act& act) -> Status {
    if (!set_worker_mode_) return Unimplemented("this scheduler asks no tracker for modes");
    KILN_ASSIGN_OR_RETURN(const v1::SetWorkerModeRequest wish, Signed(*context, *request));
    KILN_ASSIGN_OR_RETURN(*reply, set_worker_mode_(wish));
    if (reply->workers_size() == 1) {
      act.subject = SubjectOf(reply->workers(0), request->mode(), told.why);
    }
    return OkStatus();
  });
}

}  // namespace kiln::scheduler
