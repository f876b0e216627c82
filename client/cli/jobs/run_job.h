// Runs a job to its end, through the scheduler of the session or on a cluster of its own, and
// prints its course and its result. Each function returns the exit status of its command.
#pragma once

#include <set>
#include <string>

#include "base/process/stop_signal.h"
#include "base/status.h"
#include "client/check/baseline.h"
#include "client/cli/jobs/follow.h"
#include "client/client.h"
#include "client/local_cluster.h"
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
  // Devices of this machine that measure (ChooseLocalDevices).
  std::string devices = "all";
};
void AddCluster(CLI::App& command, ClusterFlags& cluster);

// Returns a cluster for a device of this machine: "cpu", "cuda", "cuda:GPU-1f0c...", "null". Each
// GPU that the flags choose has a runner with cores of its own.
StatusOr<LocalCluster::Options> ClusterOptions(const std::string& device, const ClusterFlags& flags,
                                               const Session& session);
// Prints which runners there are if they are several, and which did not start, on stderr.
void SayPlaces(const LocalCluster::Options& options, const LocalCluster& cluster,
               const Session& session);

// Prints the unfinished jobs of earlier runs other than `own`, and returns their ids. They are
// resumed only if the user asks for it.
StatusOr<std::set<std::string>> SayUnfinishedJobs(const std::string& own, SchedulerClient& client,
                                                  const Session& session);

// With a baseline (null: none) the job's best programs are compared with it at the end. The exit
// status is then 1 if one is slower.
StatusOr<int> RunJob(v1::JobSpec spec, const ClusterFlags& cluster, const FollowOptions& follow,
                     const Session& session, StopSignal& stop, const Baseline* baseline = nullptr);
// Goes on with an unfinished job of the scheduler or the database.
StatusOr<int> ResumeJob(const v1::JobStatus& job, const ClusterFlags& cluster,
                        const FollowOptions& follow, const Session& session, StopSignal& stop,
                        const Baseline* baseline = nullptr);
// Watches a job that `client`'s scheduler runs.
StatusOr<int> WatchJob(const std::string& job_id, SchedulerClient& client,
                       const FollowOptions& follow, const Session& session, StopSignal& stop);

}  // namespace kiln::client
