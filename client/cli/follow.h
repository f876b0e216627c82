// Watches a job to its end and shows its progress: a table on a terminal, lines in a pipe, or JSON.
#pragma once

#include <string>

#include "base/stop_signal.h"
#include "client/client.h"
#include "client/local_cluster.h"
#include "client/session.h"

namespace kiln::client {

struct FollowOptions {
  bool quiet = false;       // show nothing while it runs
  bool explain = false;     // say of each trial and round where it came from
  std::string latency_log;  // append a line for each round to this file; "": none
};

struct Followed {
  v1::JobStatus job;
  bool interrupted = false;  // by Ctrl-C, SIGTERM or a reader of our output that went away
};

// Until the job has ended. When interrupted: with a `cluster`, which dies with us, the job is
// cancelled and its end awaited; else it is left running, as `job` was last seen.
StatusOr<Followed> Follow(SchedulerClient& client, const std::string& job_id,
                          const Session& session, StopSignal& stop, LocalCluster* cluster,
                          const FollowOptions& options = {});

}  // namespace kiln::client
