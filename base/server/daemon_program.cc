#include "base/server/daemon_program.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/console/usage.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/process/descriptor_limit.h"
#include "base/process/process_guard.h"
#include "base/server/net.h"

namespace kiln {

void AddListenFlag(CLI::App& app, DaemonFlags& flags, std::string_view help) {
  app.add_option("--listen", flags.listen, std::string(help))->capture_default_str();
}

void AddDaemonFlags(CLI::App& app, DaemonFlags& flags, std::string_view port_file_help) {
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error")
      ->capture_default_str();
  app.add_option("--port-file", flags.port_file, std::string(port_file_help));
  app.add_option("--secret-file", flags.secret_file,
                 "the secret of the farm is in this file; every call here must carry it, and is "
                 "sent with it to the others")
      ->envname("KILN_SECRET_FILE");
  app.add_flag("--insecure", flags.insecure,
               "listen beyond this machine without a secret: whoever reaches the port can run "
               "programs on the farm");
}

Status WritePortFile(const DaemonFlags& flags, const std::vector<int>& ports) {
  if (flags.port_file.empty()) return OkStatus();
  std::string lines;
  for (const int port : ports) lines += fmt::format("{}\n", port);
  return WriteFileAtomically(flags.port_file, lines);
}

StatusOr<Secret> ReadSecret(const DaemonFlags& flags) {
  if (!flags.secret_file.empty()) return Secret::Read(flags.secret_file);
  KILN_ASSIGN_OR_RETURN(const HostPort address, ParseListenAddress(flags.listen));
  if (flags.insecure || IsLoopback(address)) return Secret();
  return FailedPrecondition(
      "other machines can reach {}, and whoever does could run programs here; give the farm a "
      "secret, `(umask 77; openssl rand -hex 32 > farm.secret)` and --secret-file farm.secret, or "
      "say --insecure where the network can be trusted",
      flags.listen);
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
  Status status = SetLogLevel(flags.log_level);
  if (status.ok()) status = work();
  if (status.ok()) return 0;
  fmt::print(stderr, "{}: {}\n", name, Message(status));
  return 1;
}

}  // namespace kiln
