#include "client/cli/jobs/farm_answers.h"

#include <utility>

#include "client/service_call.h"

namespace kiln::client {
namespace {

// A list of all jobs of a large database takes long.
constexpr uint32_t kNewestJobs = 500;

}  // namespace

StatusOr<FarmAnswers> AskFarm(const Session& session, SchedulerClient& client) {
  FarmAnswers answers;
  KILN_ASSIGN_OR_RETURN(answers.jobs, client.Jobs(kNewestJobs));
  KILN_ASSIGN_OR_RETURN(const FarmAccess access, session.Access());
  // A scheduler passes on the list of its tracker.
  if (auto workers = ListWorkers(client.address(), access); workers.ok()) {
    answers.workers = *std::move(workers);
  }
  return answers;
}

void AskForLimits(SchedulerClient& client, FarmAnswers& answers) {
  const auto users = Call(*client.stub(), &v1::Scheduler::Stub::ListUsers, v1::ListUsersRequest());
  if (users.ok()) answers.users.assign(users->users().begin(), users->users().end());
}

}  // namespace kiln::client
