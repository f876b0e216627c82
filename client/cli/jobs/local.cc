// kiln local runs a farm on this machine until it is told to stop: by Ctrl-C, or, if another
// program started it, by that program's end. Python's kiln.local() is such a program.
//
// With --json it prints one value when jobs can be handed in:
//   {"scheduler": "127.0.0.1:4321", "tracker": "127.0.0.1:4320", "secret_file": "/tmp/..",
//    "db": "kiln.db", "device": "cpu", "version": "1", "protocol": 1}
// On its standard input it takes lines "resume JOB": a job of an earlier run that was resumed goes
// on when the scheduler has to be started again.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/process/stop_signal.h"
#include "base/server/grpc_server.h"
#include "base/text/shell_word.h"
#include "base/version.h"
#include "client/cli/jobs/commands.h"
#include "client/cli/jobs/owner.h"
#include "client/cli/jobs/run_job.h"
#include "client/cli/session_flags.h"
#include "client/client.h"
#include "client/default_target.h"
#include "client/local_archive.h"
#include "client/local_cluster.h"
#include "client/this_machine.h"
#include "client/view/json.h"

namespace kiln::client {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(100);
constexpr absl::Duration kLook = absl::Milliseconds(10);
constexpr absl::Duration kWorkersTimeout = absl::Seconds(60);
constexpr std::string_view kResume = "resume ";

struct LocalFlags {
  // "": the session's.
  std::string db;
  ClusterFlags cluster;
  // "": the GPU of this machine if there is one.
  std::string device;
};

StatusOr<std::string> DeviceHere() {
  KILN_ASSIGN_OR_RETURN(const DefaultTarget found, FindDefaultTarget(Session()));
  return DeviceOfTarget(found.target);
}

// Starts again what has died. An error means that it keeps dying.
Status Supervise(LocalCluster& cluster) {
  return cluster.Supervise([](const std::string& text) { fmt::print(stderr, "kiln: {}\n", text); });
}

// Returns once the tracker knows a builder and a runner, so that a job finds a device.
Status WaitForWorkers(LocalCluster& cluster, const std::function<bool()>& is_over) {
  const absl::Time deadline = absl::Now() + kWorkersTimeout;
  while (absl::Now() < deadline && !is_over()) {
    KILN_RETURN_IF_ERROR(Supervise(cluster));
    KILN_ASSIGN_OR_RETURN(const v1::ListReply there,
                          ListWorkers(cluster.tracker_address(), cluster.secret()));
    std::set<int> kinds;
    for (const v1::WorkerState& worker : there.workers()) kinds.insert(worker.kind());
    if (kinds.contains(v1::BUILDER) && kinds.contains(v1::RUNNER)) return OkStatus();
    absl::SleepFor(kLook);
  }
  if (is_over()) return Cancelled("ended before the workers were there");
  return DeadlineExceeded("the workers did not announce themselves within {} s",
                          absl::ToInt64Seconds(kWorkersTimeout));
}

// Prints how to reach the farm.
void PrintPlace(const LocalCluster& cluster, const std::string& device, const Session& session) {
  if (session.json) {
    fmt::print(
        "{{\"scheduler\":{},\"tracker\":{},\"secret_file\":{},\"db\":{},\"device\":{},"
        "\"version\":{},\"protocol\":{}}}\n",
        JsonString(cluster.scheduler_address()), JsonString(cluster.tracker_address()),
        JsonString(cluster.secret_path()), JsonString(session.db), JsonString(device),
        JsonString(std::string(kVersion)), kProtocol);
  } else {
    fmt::print(
        "a farm on this machine: device {}, records in {}; Ctrl-C ends it\n"
        "  export KILN_SCHEDULER={} KILN_SECRET_FILE={}\n"
        "or in Python\n"
        "  kiln.connect(\"{}\", keys=\"{}\")\n",
        device, session.db, cluster.scheduler_address(), ShellWord(cluster.secret_path()),
        cluster.scheduler_address(), cluster.secret_path());
  }
  std::fflush(stdout);
}

void Obey(const std::vector<std::string>& lines, LocalCluster& cluster) {
  for (const std::string& line : lines) {
    if (line.starts_with(kResume)) cluster.GoOnWith(line.substr(kResume.size()));
  }
}

// Leaves the jobs of earlier runs alone.
Status LeaveOtherJobs(LocalCluster& cluster, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto client,
                        SchedulerClient::Connect(cluster.scheduler_address(), cluster.secret()));
  KILN_ASSIGN_OR_RETURN(std::set<std::string> others, SayUnfinishedJobs("", *client, session));
  cluster.LeaveAlone(std::move(others));
  return OkStatus();
}

StatusOr<int> RunLocal(const LocalFlags& flags, Session session) {
  // StopSignal must exist before any thread.
  StopSignal stop;
  Owner owner(STDIN_FILENO);
  InitGrpc();
  session.scheduler.clear();
  if (!flags.db.empty()) session.db = flags.db;
  KILN_RETURN_IF_ERROR(CheckDatabase(session.db));
  std::string device = flags.device;
  if (device.empty()) {
    KILN_ASSIGN_OR_RETURN(device, DeviceHere());
  }
  KILN_ASSIGN_OR_RETURN(const LocalCluster::Options options,
                        ClusterOptions(device, flags.cluster, session));
  bool over = false;
  const auto is_over = [&] {
    if (!over && owner.IsGone()) {
      over = true;
      fmt::print(stderr, "kiln: standard input has ended, and the farm ends with it\n");
    }
    return over = over || stop.WaitFor(absl::ZeroDuration()).has_value();
  };
  auto cluster = LocalCluster::Start(options, is_over);
  if (over) return kInterruptedExit;
  KILN_RETURN_IF_ERROR(cluster.status());
  SayPlaces(options, **cluster, session);
  const Status ready = WaitForWorkers(**cluster, is_over);
  if (over) return kInterruptedExit;
  KILN_RETURN_IF_ERROR(ready);
  KILN_RETURN_IF_ERROR(LeaveOtherJobs(**cluster, session));
  PrintPlace(**cluster, options.device, session);
  while (!is_over()) {
    Obey(owner.TakeLines(), **cluster);
    KILN_RETURN_IF_ERROR(Supervise(**cluster));
    over = over || stop.WaitFor(kPause).has_value();
  }
  return 0;
}

}  // namespace

Run AddLocal(CLI::App& local, SessionFlags& session) {
  const auto flags = std::make_shared<LocalFlags>();
  local.description("a farm on this machine, for other commands and for Python, until Ctrl-C");
  local.add_option("--db", flags->db, "the database file of jobs and records [kiln.db]")
      ->type_name("FILE");
  local
      .add_option("--device", flags->device,
                  "what to measure on: cpu, cuda, cuda:GPU-UUID, null (measures nothing) [a GPU of "
                  "this machine, or else its CPU]")
      ->type_name("DEVICE");
  AddCluster(local, flags->cluster);
  session.AddJson(local);
  return [flags](const Session& session) { return RunLocal(*flags, session); };
}

}  // namespace kiln::client
