// The service's calls about users: pauses, shares, limits, and who did what.
#include <algorithm>
#include <map>

#include "scheduler/fair_share/quotas.h"
#include "scheduler/service/service.h"

namespace kiln::scheduler {
namespace {

constexpr uint32_t kDefaultAuditLimit = 1'000;
constexpr uint32_t kMostAuditLimit = 10'000;

v1::AuditEntry EntryOf(const store::AuditRow& row) {
  v1::AuditEntry entry;
  entry.set_id(row.id);
  entry.set_at_s(1e-3 * static_cast<double>(row.at_ms));
  entry.set_user(row.user);
  entry.set_call(row.call);
  entry.set_subject(row.subject);
  entry.set_refused(row.refused);
  return entry;
}

store::UserLimits LimitsOf(const v1::UserShare& share) {
  return {.weight = share.weight() == 0 ? 1 : share.weight(),
          .trials_per_day = share.trials_per_day(),
          .devices = share.devices(),
          .jobs = share.jobs(),
          .stored_bytes = share.stored_bytes()};
}

v1::UserShare ShareOf(const FairShares::User& user, const store::UserTotals& totals) {
  v1::UserShare share;
  share.set_name(user.name);
  share.set_weight(user.limits.weight);
  share.set_trials_per_day(user.limits.trials_per_day);
  share.set_devices(user.limits.devices);
  share.set_jobs(user.limits.jobs);
  share.set_stored_bytes(user.limits.stored_bytes);
  share.set_used_device_s(user.device_s);
  share.set_trials_today(totals.trials_since);
  share.set_devices_now(static_cast<uint32_t>(std::max(user.devices, 0)));
  share.set_jobs_now(totals.unfinished_jobs);
  share.set_stored_bytes_now(totals.stored_bytes);
  return share;
}

Status NoShares() { return Unimplemented("this scheduler keeps no shares of users"); }

}  // namespace

grpc::Status SchedulerService::PauseJob(grpc::ServerContext* context,
                                        const v1::PauseJobRequest* request, v1::PauseJobReply*) {
  const Act act{.call = "PauseJob", .subject = "job " + request->job_id()};
  return AnswerAudited(*context, *request, act, [&](Act&) -> Status {
    KILN_RETURN_IF_ERROR(AdmitForJob(*context, request->job_id(), "/kiln.v1.Scheduler/PauseJob"));
    return RunWhileCallerWaits(*context, [&](const std::stop_token& gone) {
      return jobs_.Pause(request->job_id(), gone);
    });
  });
}

grpc::Status SchedulerService::ListUsers(grpc::ServerContext* context,
                                         const v1::ListUsersRequest* request,
                                         v1::ListUsersReply* reply) {
  return Answer(*context, *request, [&]() -> Status {
    if (shares_ == nullptr) return NoShares();
    const int64_t since_s = NowSeconds() - kDay_s;
    for (const FairShares::User& user : shares_->Users()) {
      if (context->IsCancelled()) return GoneStatus();
      if (!request->name().empty() && user.name != request->name()) continue;
      store::UserTotals totals;
      if (!request->without_sums()) {
        KILN_ASSIGN_OR_RETURN(totals, store_.TotalsOfUser(user.name, since_s, true));
      }
      *reply->add_users() = ShareOf(user, totals);
    }
    return OkStatus();
  });
}

grpc::Status SchedulerService::SetUser(grpc::ServerContext* context,
                                       const v1::SetUserRequest* request, v1::SetUserReply*) {
  const Act act{.call = "SetUser", .subject = "user " + request->user().name()};
  return AnswerAudited(*context, *request, act, [&](Act&) -> Status {
    if (shares_ == nullptr) return NoShares();
    if (request->user().name().empty())
      return InvalidArgument(
          "the user has no name; expected the name of a certificate, or the one "
          "that jobs are submitted with");
    return shares_->SetLimits(request->user().name(), LimitsOf(request->user()));
  });
}

grpc::Status SchedulerService::ListAudit(grpc::ServerContext* context,
                                         const v1::ListAuditRequest* request,
                                         v1::ListAuditReply* reply) {
  return Answer(*context, *request, [&]() -> Status {
    audit_.Flush();
    const uint32_t asked = request->limit() == 0 ? kDefaultAuditLimit : request->limit();
    const double since_ms = std::clamp(request->since_s() * 1e3, 0.0, 1e15);
    KILN_ASSIGN_OR_RETURN(const std::vector<store::AuditRow> rows,
                          store_.Audit(request->user(), static_cast<int64_t>(since_ms),
                                       std::min(asked, kMostAuditLimit)));
    for (const store::AuditRow& row : rows) *reply->add_entries() = EntryOf(row);
    return OkStatus();
  });
}

}  // namespace kiln::scheduler
