// Runs a job to its end, through the scheduler of the session or on a cluster of its own, and
// prints its course and its result. Each function returns the exit status of its command.
#pragma once

#include <set>
#include <string>

#include "base/process/stop_signal.h"
#include "base/status.h"
#include "client/cli/jobs/follow.h"
#include "client/client.h"
#include "client/session.h"
#include "proto/scheduler.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kiln::client {

// Options of the cluster that a job without a scheduler gets.
struct ClusterFlags {
  // "": a temporary folder.
  std::string log_folder;
  // 0: all cores.
  int threads = 0;
  // 0: one for each core.
  int build_jobs = 0;
};
void AddCluster(CLI::App& command, ClusterFlags& cluster);

// Prints the unfinished jobs of earlier runs other than `own`, and returns their ids. They are
// resumed only if the user asks for it.
StatusOr<std::set<std::string>> SayUnfinishedJobs(const std::string& own, SchedulerClient& client,
                                                  const Session& session);

StatusOr<int> RunJob(v1::JobSpec spec, const ClusterFlags& cluster, const FollowOptions& follow,
                     const Session& session, StopSignal& stop);
// Goes on with an unfinished job of the scheduler or the database.
StatusOr<int> ResumeJob(const v1::JobStatus& job, const ClusterFlags& cluster,
                        const FollowOptions& follow, const Session& session, StopSignal& stop);
// Watches a job that `client`'s scheduler runs.
StatusOr<int> WatchJob(const std::string& job_id, SchedulerClient& client,
                       const FollowOptions& follow, const Session& session, StopSignal& stop);

}  // namespace kiln::client
