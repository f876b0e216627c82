// kiln fleet slurm keeps workers alive as jobs of Slurm, as many as the farm's queue needs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/process/stop_signal.h"
#include "base/server/grpc_server.h"
#include "base/text/shell_word.h"
#include "base/text/utf8.h"
#include "client/cli/fleet/commands.h"
#include "client/cli/fleet/fleet_flags.h"
#include "client/cli/session_flags.h"
#include "client/fleet/scheduler_queue.h"
#include "client/fleet/slurm_programs.h"

namespace kiln::client {
namespace {

// While the fleet ends, it looks more often.
constexpr absl::Duration kEndLook = absl::Seconds(1);

// Prints a change with its time, a line each.
class ChangePrinter {
 public:
  explicit ChangePrinter(bool json) : json_(json) {}

  void operator()(const std::string& text) const {
    const absl::Time now = Clock::Real().Now();
    if (json_) {
      const nlohmann::json line = {{"time_s", absl::ToDoubleSeconds(now - absl::UnixEpoch())},
                                   {"text", ValidUtf8(text)}};
      fmt::print("{}\n", line.dump());
    } else {
      fmt::print("{}  {}\n", absl::FormatTime("%Y-%m-%d %H:%M:%S", now, absl::LocalTimeZone()),
                 Printable(text));
    }
    std::fflush(stdout);
  }

 private:
  const bool json_;
};

// Prints the commands of sbatch as a shell takes them.
void PrintRequests(const FleetOptions& options) {
  for (const FleetKindOptions& kind : options.kinds) {
    std::string command;
    for (const std::string& word : SbatchCommand(kind.request)) {
      command += (command.empty() ? "" : " ") + ShellWord(word);
    }
    fmt::print("{} <<'END'\n{}END\n", command, kind.request.script);
  }
}

// Drains and cancels all workers. A second signal ends the program, because the first one has
// been waited for.
void EndFleet(Fleet& fleet, const ChangePrinter& print) {
  print(
      "the fleet ends: its workers are drained, and their jobs are cancelled; Ctrl-C leaves "
      "those that are left");
  fleet.End();
  for (;;) {
    fleet.Tick();
    if (fleet.ended()) return;
    Clock::Real().SleepFor(kEndLook);
  }
}

StatusOr<int> KeepFleet(const FleetFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const FleetOptions options, flags.Complete(session));
  if (flags.dry_run) {
    PrintRequests(options);
    return 0;
  }
  if (session.scheduler.empty()) {
    return InvalidArgument(
        "the scheduler says what its jobs wait for; name it by --scheduler HOST:PORT or "
        "KILN_SCHEDULER");
  }
  // Before any thread, so that all have the signals blocked.
  StopSignal stop;
  InitGrpc();
  SlurmPrograms cluster;
  SchedulerQueue farm(session);
  const ChangePrinter print(session.json);
  Fleet fleet(options, cluster, farm, Clock::Real(), print);
  do {
    fleet.Tick();
  } while (!stop.WaitFor(absl::Seconds(flags.look_every_s)).has_value());
  if (flags.keep) {
    print("this program ends; the workers stay, and `kiln fleet slurm` finds them again");
  } else {
    EndFleet(fleet, print);
    print("the fleet has ended");
  }
  return 0;
}

}  // namespace

Run AddFleetSlurm(CLI::App& slurm, SessionFlags& session) {
  const auto flags = std::make_shared<FleetFlags>();
  slurm.description(
      "keep as many workers alive as jobs of Slurm as the farm's queue needs, until Ctrl-C");
  flags->Add(slurm);
  session.AddScheduler(slurm);
  return [flags](const Session& session) { return KeepFleet(*flags, session); };
}

}  // namespace kiln::client
