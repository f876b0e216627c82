// kiln config prints the configuration file of the daemons with all defaults, or checks one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <set>
#include <string>

#include "base/console/config_file.h"
#include "base/server/daemon_program.h"
#include "base/text/utf8.h"
#include "client/cli/config/commands.h"
#include "client/cli/config/daemon_apps.h"

namespace kiln::client {
namespace {

struct Flags {
  bool defaults = false;
  std::string check;
};

void PrintDefaults() {
  fmt::print(
      "# Settings of Kiln's daemons: kiln DAEMON --config FILE. These are the defaults. A flag on\n"
      "# the command line goes before a key here, and \"\" is no value.\n");
  for (const DaemonApp& daemon : DaemonApps()) {
    fmt::print("\n{}", DefaultConfig(daemon.name, *daemon.app));
  }
}

// Prints the first mistake of each table. Returns the exit status.
StatusOr<int> Check(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(const ConfigFile file, ReadConfigFile(path));
  // A mistake outside of the tables is one for each daemon.
  std::set<std::string> mistakes;
  for (const DaemonApp& daemon : DaemonApps()) {
    const Status status = ApplyConfig(file, kDaemonNames, daemon.name, *daemon.app);
    if (status.ok() || !mistakes.insert(std::string(Message(status))).second) continue;
    fmt::print(stderr, "kiln: {}\n", Printable(Message(status)));
  }
  if (!mistakes.empty()) return 1;
  fmt::print("{}: names, types and ranges are right\n", path);
  return 0;
}

StatusOr<int> RunConfig(const Flags& flags) {
  if (flags.defaults == !flags.check.empty()) {
    return InvalidArgument("expected --defaults or --check FILE; see kiln config --help");
  }
  if (!flags.check.empty()) return Check(flags.check);
  PrintDefaults();
  return 0;
}

}  // namespace

Run AddConfig(CLI::App& config, SessionFlags&) {
  auto flags = std::make_shared<Flags>();
  config.description("the configuration file of the daemons: its keys, or what is wrong with one");
  config.add_flag("--defaults", flags->defaults,
                  "print a file with every key of every daemon, its default and its help");
  config
      .add_option("--check", flags->check,
                  "say what is wrong with the names, types and ranges of this file")
      ->type_name("FILE");
  return [flags](const Session&) { return RunConfig(*flags); };
}

}  // namespace kiln::client
