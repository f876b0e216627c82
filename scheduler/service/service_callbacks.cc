// The stream of a process of a user that serves parts of a job.
#include "rpc/field_limits.h"
#include "scheduler/callbacks/callback_hub.h"
#include "scheduler/service/service.h"

namespace kiln::scheduler {
namespace {

// Longest time until the end of the job, or of the process, is noticed.
constexpr absl::Duration kLook = absl::Milliseconds(250);

}  // namespace

grpc::Status SchedulerService::ServeCallbacks(grpc::ServerContext* context,
                                              CallbackStream* stream) {
  return Answer(*context, v1::CallbackReply(), [&] { return Serve(*context, *stream); });
}

Status SchedulerService::CheckServing(const grpc::ServerContext& context,
                                      const v1::CallbackReply& first) const {
  KILN_RETURN_IF_ERROR(CheckFields(first));
  KILN_ASSIGN_OR_RETURN(const store::JobRow job, store_.GetJob(first.job_id()));
  KILN_RETURN_IF_ERROR(
      admission_.AdmitFor(context, job.user, "/kiln.v1.Scheduler/ServeCallbacks", "job " + job.id));
  KILN_ASSIGN_OR_RETURN(const std::string user, admission_.CallerName(context, first.user()));
  if (job.user != user) {
    return Status(StatusCode::kPermissionDenied,
                  fmt::format("job {} belongs to '{}', and '{}' offers to serve it; only its user "
                              "may",
                              job.id, job.user, user));
  }
  v1::JobSpec spec;
  if (!spec.ParseFromString(job.spec))
    return DataLoss("the spec of job {} in the database is damaged", job.id);
  if (!spec.has_served()) {
    return FailedPrecondition(
        "job {} has no part that a process serves: neither a cost model nor sketch rules nor an "
        "objective of its user",
        job.id);
  }
  if (!store::IsFinal(job.state)) return OkStatus();
  return FailedPrecondition(
      "job {} has ended: it has {}; a job that failed goes on with `kiln tune "
      "--resume {}`",
      job.id, store::JobStateName(job.state), job.id);
}

Status SchedulerService::Serve(grpc::ServerContext& context, CallbackStream& stream) {
  KILN_ASSIGN_OR_RETURN(Streams::Stream place, streams_.Open(context, "callbacks"));
  v1::CallbackReply first;
  if (!place.Exchange([&] { return stream.Read(&first); })) return GoneStatus();
  KILN_RETURN_IF_ERROR(CheckServing(context, first));
  KILN_ASSIGN_OR_RETURN(const auto connection,
                        jobs_.callbacks().Connect(first.job_id(), [&] { context.TryCancel(); }));
  const auto send = [&](const v1::CallbackRequest& request) {
    return place.Exchange([&] { return stream.Write(request); });
  };
  if (!send(v1::CallbackRequest())) return GoneStatus();
  std::optional<uint64_t> seen;  // version of the job when its state was read last
  while (true) {
    if (stopping_) return Unavailable("the scheduler is stopping; serve the job again");
    if (context.IsCancelled()) return GoneStatus();
    const std::optional<v1::CallbackRequest> request = connection->Take(kLook);
    if (!request.has_value()) {
      const uint64_t version = events_.version(first.job_id());
      if (seen == version) continue;
      seen = version;
      KILN_ASSIGN_OR_RETURN(const store::JobRow job, store_.GetJob(first.job_id()));
      if (store::IsFinal(job.state)) return OkStatus();
      continue;
    }
    // The time limit of the answer is the job's, not that of streams that stand still.
    v1::CallbackReply reply;
    if (!send(*request) || !stream.Read(&reply)) return GoneStatus();
    if (const Status checked = CheckFields(reply); !checked.ok()) {
      connection->Refuse(checked);
      return checked;
    }
    KILN_RETURN_IF_ERROR(connection->Answer(std::move(reply)));
  }
}

}  // namespace kiln::scheduler
