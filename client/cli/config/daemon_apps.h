// The four daemons as commands without a run: their flags, for `kiln config`.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace kiln::client {

struct DaemonApp {
  // One of kDaemonNames (base/server/daemon_program.h).
  std::string_view name;
  // The values of the flags. It outlives the command.
  std::shared_ptr<void> values;
  std::shared_ptr<CLI::App> app;
};

// Returns all daemons in the order of kDaemonNames, each with its defaults.
std::vector<DaemonApp> DaemonApps();

}  // namespace kiln::client
