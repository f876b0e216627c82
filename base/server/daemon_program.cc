#include "base/server/daemon_program.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/console/config_file.h"
#include "base/console/usage.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/log_format.h"
#include "base/process/descriptor_limit.h"
#include "base/process/process_guard.h"

namespace kiln {
namespace {

Status ApplyConfigOf(const DaemonFlags& flags, std::string_view name, CLI::App& app) {
  if (flags.config_file.empty()) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const ConfigFile file, ReadConfigFile(flags.config_file));
  return ApplyConfig(file, kDaemonNames, name, app);
}

// Returns the level that the command line or the configuration names, otherwise that of the
// environment, if it has one.
std::string LogLevelOf(const CLI::App& app, const DaemonFlags& flags) {
  const char* const variable = std::getenv("KILN_LOG");
  const CLI::Option* const option = app.get_option_no_throw("--log-level");
  const bool is_said = option != nullptr && option->count() > 0;
  return is_said || variable == nullptr || *variable == '\0' ? flags.log_level : variable;
}

}  // namespace

void AddListenFlag(CLI::App& app, DaemonFlags& flags, std::string_view help) {
  app.add_option("--listen", flags.listen, std::string(help))->capture_default_str();
}

void AddDaemonFlags(CLI::App& app, DaemonFlags& flags, std::string_view port_file_help) {
  app.add_option("--config", flags.config_file,
                 "a file in TOML with settings for the flags that are not given here; `kiln config "
                 "--defaults` prints one")
      ->type_name("FILE")
      ->configurable(false);
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error [KILN_LOG]")
      ->capture_default_str();
  app.add_option("--log-format", flags.log_format,
                 "text, or json: an object per line, with the job, the trial and its trace")
      ->capture_default_str();
  app.add_option("--port-file", flags.port_file, std::string(port_file_help));
  app.add_option(
      "--keys", flags.keys_folder,
      "the folder with this daemon's keys: every caller must have keys of the same farm, "
      "and connections are of TLS [KILN_KEYS]");
  app.add_option("--secret-file", flags.secret_file,
                 "instead of keys, on one machine: the secret of the farm is in this file; every "
                 "call here must carry it, and is sent with it to the others [KILN_SECRET_FILE]");
  app.add_flag("--insecure", flags.insecure,
               "listen beyond this machine without keys: whoever reaches the port can run programs "
               "on the farm, and whoever reads the network learns the secret");
}

Status WritePortFile(const DaemonFlags& flags, const std::vector<int>& ports) {
  if (flags.port_file.empty()) return OkStatus();
  std::string lines;
  for (const int port : ports) lines += fmt::format("{}\n", port);
  return WriteFileAtomically(flags.port_file, lines);
}

int RunDaemon(std::string_view name, CLI::App& app, const DaemonFlags& flags, int argc, char** argv,
              const std::function<Status()>& work) {
  HideProcess();
  InitLog(name);
  RaiseDescriptorLimit();
  PlainHelp(app);
  // The daemon was started as a command of `kiln`.
  if (argv[0] == name) app.name(fmt::format("kiln {}", name));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    // Help was asked for.
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}: {}\n", name, UsageError(app, error));
    return kUsageExit;
  }
  if (const Status config = ApplyConfigOf(flags, name, app); !config.ok()) {
    fmt::print(stderr, "{}: {}\n", name, Message(config));
    return kUsageExit;
  }
  Status status = SetLogLevel(LogLevelOf(app, flags));
  if (status.ok()) status = SetLogFormat(flags.log_format);
  if (status.ok()) status = work();
  if (status.ok()) return 0;
  fmt::print(stderr, "{}: {}\n", name, Message(status));
  return 1;
}

}  // namespace kiln
