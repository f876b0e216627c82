// kiln farm supervise runs the daemons of a farm, until a signal ends it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/log.h"
#include "base/process/stop_signal.h"
#include "client/cli/farm/commands.h"
#include "client/cli/farm/farm_flags.h"
#include "client/farm/farm_places.h"
#include "client/farm/supervisor.h"
#include "client/host_topology.h"
#include "client/local_devices.h"
#include "runtime/parallel_runtime.h"

namespace kiln::client {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);

StatusOr<LocalPlaces> FindPlaces(const FarmOptions& options) {
  return FindFarmPlaces(options, ListLocalDevices, HostTopology(runtime::AllowedCores()));
}

StatusOr<int> Supervise(const FarmFlags& flags) {
  // Before any thread, so that all have the signals blocked.
  StopSignal stop;
  SetLogLevel(LogLevel::kInfo);
  KILN_ASSIGN_OR_RETURN(const FarmOptions options, flags.Complete());
  // The folder in which the user stood may go away.
  if (chdir("/") != 0) return Internal("no root folder");
  bool stopped = false;
  const auto interrupted = [&] {
    stopped = stopped || stop.WaitFor(absl::ZeroDuration()).has_value();
    return stopped;
  };
  KILN_ASSIGN_OR_RETURN(const auto farm,
                        FarmSupervisor::Start(options, FindPlaces, interrupted, Clock::Real()));
  while (!stop.WaitFor(kTick).has_value()) farm->Tick();
  return 0;
}

}  // namespace

Run AddFarmSupervise(CLI::App& supervise, SessionFlags& /*session*/) {
  const auto flags = std::make_shared<FarmFlags>();
  supervise.description(
      "run the daemons of a farm in this process; `up` does so in the background");
  // Not in the help: people type `up`.
  supervise.group("");
  flags->Add(supervise);
  return [flags](const Session&) { return Supervise(*flags); };
}

}  // namespace kiln::client
