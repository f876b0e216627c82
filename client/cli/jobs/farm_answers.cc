#include "client/cli/jobs/farm_answers.h"

#include <utility>

#include "client/service_call.h"

namespace kiln::client {
StatusOr<FarmAnswers> AskFarm(const Session& session, SchedulerClient& client) {
  FarmAnswers answers;
  v1::ListJobsRequest unfinished;
  unfinished.set_unfinished(true);
  KILN_ASSIGN_OR_RETURN(const v1::ListJobsReply there,
                        Call(*client.stub(), &v1::Scheduler::Stub::ListJobs, unfinished));
  answers.jobs.assign(there.jobs().begin(), there.jobs().end());
  KILN_ASSIGN_OR_RETURN(const FarmAccess access, session.Access());
  // A scheduler passes on the list of its tracker.
  if (auto workers = ListWorkers(client.address(), access); workers.ok()) {
    answers.workers = *std::move(workers);
  }
  return answers;
}

void AskForLimits(SchedulerClient& client, const std::string& user, FarmAnswers& answers) {
  v1::ListUsersRequest request;
  request.set_name(user);
  request.set_without_sums(true);
  const auto users = Call(*client.stub(), &v1::Scheduler::Stub::ListUsers, request);
  if (users.ok()) answers.users.assign(users->users().begin(), users->users().end());
}

}  // namespace kiln::client
