// Watches a job to its end and shows its progress: a table on a terminal, lines in a pipe, or JSON.
#pragma once

#include <string>

#include "base/process/stop_signal.h"
#include "client/client.h"
#include "client/local_cluster.h"
#include "client/session.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kiln::client {

struct FollowOptions {
  // True: nothing is shown while the job runs.
  bool quiet = false;
  // True: each trial and round is shown with its origin.
  bool explain = false;
  // A line for each round is appended to this file; "": none.
  std::string latency_log;
  // A line of a log of TVM for each trial is appended to this file; "": none.
  std::string record_file;
};
void AddFollow(CLI::App& command, FollowOptions& follow);

struct Followed {
  v1::JobStatus job;
  // True: Ctrl-C, SIGTERM or a closed output ended the watching.
  bool interrupted = false;
};

// Returns when the job has ended, or after an interruption. If interrupted, a job of a `cluster`,
// which dies with this process, is cancelled and its end awaited. Any other job keeps running, and
// `job` is its last known state.
StatusOr<Followed> Follow(SchedulerClient& client, const std::string& job_id,
                          const Session& session, StopSignal& stop, LocalCluster* cluster,
                          const FollowOptions& options = {});

}  // namespace kiln::client
