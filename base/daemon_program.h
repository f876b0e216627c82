// A daemon of ours as a program: the flags that each of them has, its log, its exit status.
//
// For main's thread; RunDaemon before any other runs, since the work it does may block signals.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret.h"
#include "base/status.h"

namespace CLI {
class App;
}

namespace kiln {

struct DaemonFlags {
  std::string log_level = "info";
  std::string port_file;
  std::string secret_file;
  bool insecure = false;
};

inline constexpr std::string_view kPortFileHelp =
    "write the port here, as a number and a newline, once it is bound";

// --log-level, --port-file, --secret-file (also by the environment, KILN_SECRET_FILE) and
// --insecure.
void AddDaemonFlags(CLI::App& app, DaemonFlags& flags,
                    std::string_view port_file_help = kPortFileHelp);

// For whoever has started the daemon and waits until it serves: one line per port, all at once.
// Nothing without --port-file.
Status WritePortFile(const DaemonFlags& flags, const std::vector<int>& ports);

// The secret of --secret-file; none without. FailedPrecondition when there is none and `listen` can
// be reached from other machines, unless --insecure.
StatusOr<Secret> ReadSecret(const DaemonFlags& flags, const std::string& listen);

// Hides the process (process_guard.h): it reads the secret, and children of it run strangers' code.
// Parses the command line into what `app` knows, then does `work` under the log level of `flags`.
// Returns the exit status: 0 also after --help, 1 after an error, kUsageExit (usage.h) for a
// command line that is wrong, both with "NAME: message" on stderr. The log says `name` from the
// start. The process can have as many descriptors open as its user may. Where argv[0] is `name`, the program is `kiln NAME` to its user.
int RunDaemon(std::string_view name, CLI::App& app, const DaemonFlags& flags, int argc, char** argv,
              const std::function<Status()>& work);

}  // namespace kiln
