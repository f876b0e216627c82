#include "client/cli/config/daemon_apps.h"

#include <CLI/CLI.hpp>

#include "builder/daemon.h"
#include "runner/daemon.h"
#include "scheduler/daemon.h"
#include "tracker/daemon.h"

namespace kiln::client {
namespace {

DaemonApp MakeDaemonApp(std::string_view name, std::shared_ptr<void> (*add_flags)(CLI::App& app)) {
  auto app = std::make_shared<CLI::App>();
  std::shared_ptr<void> values = add_flags(*app);
  return {name, std::move(values), std::move(app)};
}

}  // namespace

std::vector<DaemonApp> DaemonApps() {
  return {MakeDaemonApp("tracker", tracker::AddTrackerFlags),
          MakeDaemonApp("scheduler", scheduler::AddSchedulerFlags),
          MakeDaemonApp("builder", builder::AddBuilderFlags),
          MakeDaemonApp("runner", runner::AddRunnerFlags)};
}

}  // namespace kiln::client
