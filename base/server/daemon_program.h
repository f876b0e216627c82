// A daemon of ours as a program: the flags that each daemon has, its log, its exit status.
//
// All functions belong to main's thread. RunDaemon comes before any other thread runs, since the
// work may block signals.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace CLI {
class App;
}

namespace kiln {

// All daemons, which are the tables of a configuration file.
inline constexpr std::string_view kDaemonNames[] = {"tracker", "scheduler", "builder", "runner"};

struct DaemonFlags {
  // HOST:PORT to serve on; port 0 = any free port. A daemon sets its usual address.
  std::string listen;
  // Path of a configuration file (base/console/config_file.h); empty: none.
  std::string config_file;
  std::string log_level = "info";
  std::string log_format = "text";
  std::string port_file;
  std::string keys_folder;
  std::string secret_file;
  bool insecure = false;
};

inline constexpr std::string_view kPortFileHelp =
    "write the port here, as a number and a newline, once it is bound";

inline constexpr std::string_view kListenHelp = "HOST:PORT to serve on; port 0 = any free one";

// Adds --listen, with `flags.listen` as its default. It is apart from AddDaemonFlags, because it
// is the first flag of a daemon's help and the others are among the last.
void AddListenFlag(CLI::App& app, DaemonFlags& flags, std::string_view help = kListenHelp);

// Adds --config, --log-level, --log-format, --port-file, --keys, --secret-file and --insecure.
// rpc/daemon_access.h opens what the last four name.
void AddDaemonFlags(CLI::App& app, DaemonFlags& flags,
                    std::string_view port_file_help = kPortFileHelp);

// Writes one line per port, all at once, for the program that has started the daemon and waits
// until it serves. Does nothing without --port-file.
Status WritePortFile(const DaemonFlags& flags, const std::vector<int>& ports);

// Runs a daemon: parses the command line into the flags of `app`, takes what is not there from the
// table `name` of the file --config, then does `work` under the log level and format of `flags`.
// Returns the exit status: 0, also after --help; 1 after an error; kUsageExit (usage.h) for a wrong
// command line or configuration file. All failures print "NAME: message" on stderr.
//
// The process is hidden (process_guard.h), because it reads keys and its children run
// strangers' code. The log has `name` from the start. The process can have as many descriptors open
// as its user may. If argv[0] is `name`, messages call the program `kiln NAME`.
int RunDaemon(std::string_view name, CLI::App& app, const DaemonFlags& flags, int argc, char** argv,
              const std::function<Status()>& work);

}  // namespace kiln
