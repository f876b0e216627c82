#include "base/daemon_program.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/file.h"
#include "base/log.h"
#include "base/usage.h"

namespace kiln {

void AddDaemonFlags(CLI::App& app, DaemonFlags& flags, std::string_view port_file_help) {
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error")
      ->capture_default_str();
  app.add_option("--port-file", flags.port_file, std::string(port_file_help));
}

Status WritePortFile(const DaemonFlags& flags, const std::vector<int>& ports) {
  if (flags.port_file.empty()) return OkStatus();
  std::string lines;
  for (const int port : ports) lines += fmt::format("{}\n", port);
  return WriteFileAtomically(flags.port_file, lines);
}

int RunDaemon(std::string_view name, CLI::App& app, const DaemonFlags& flags, int argc, char** argv,
              const std::function<Status()>& work) {
  InitLog(name);
  PlainHelp(app);
  if (argv[0] == name) app.name(fmt::format("kiln {}", name));  // it was started as a command
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // help
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}: {}\n", name, UsageError(app, error));
    return kUsageExit;
  }
  Status status = SetLogLevel(flags.log_level);
  if (status.ok()) status = work();
  if (status.ok()) return 0;
  fmt::print(stderr, "{}: {}\n", name, Message(status));
  return 1;
}

}  // namespace kiln
