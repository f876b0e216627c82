// kiln watch shows a job of a scheduler to its end.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/process/stop_signal.h"
#include "base/server/grpc_server.h"
#include "client/cli/jobs/commands.h"
#include "client/cli/jobs/follow.h"
#include "client/cli/jobs/run_job.h"
#include "client/cli/session_flags.h"
#include "client/client.h"

namespace kiln::client {
namespace {

struct WatchFlags {
  std::string job_id;
  FollowOptions follow;
};

StatusOr<int> Watch(const WatchFlags& flags, const Session& session) {
  // StopSignal must exist before any thread.
  StopSignal stop;
  InitGrpc();
  if (session.scheduler.empty()) {
    return InvalidArgument(
        "watch needs a scheduler: give --scheduler HOST:PORT or set KILN_SCHEDULER; {} reads the "
        "database",
        session.Command("jobs " + flags.job_id));
  }
  KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
  return WatchJob(flags.job_id, *client, flags.follow, session, stop);
}

}  // namespace

Run AddWatch(CLI::App& watch, SessionFlags& session) {
  const auto flags = std::make_shared<WatchFlags>();
  watch.description("watch a job of a scheduler to its end");
  watch.add_option("job", flags->job_id, "id of the job")->required();
  AddFollow(watch, flags->follow);
  session.AddPlace(watch);
  return [flags](const Session& session) { return Watch(*flags, session); };
}

}  // namespace kiln::client
