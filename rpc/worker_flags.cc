#include "rpc/worker_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/server/net.h"

namespace kiln {

void AddWorkerFlags(CLI::App& app, WorkerFlags& flags, std::string_view worker,
                    std::string_view listen_help) {
  AddListenFlag(app, flags, listen_help);
  app.add_option("--advertise", flags.advertise,
                 fmt::format("HOST:PORT at which schedulers reach this {}; default: the address it "
                             "serves on, with this machine's name when that is all addresses",
                             worker));
  app.add_option("--tracker", flags.tracker, "HOST:PORT of the tracker to announce to");
  app.add_flag("--require-sandbox", flags.require_sandbox,
               "do not start unless all of the sandbox works on this machine: namespaces, seccomp, "
               "Landlock, children that are not root, and a control group that limits their memory "
               "and number; without it the log and `kiln workers` name what is missing");
}

Status CheckWorkerFlags(const WorkerFlags& flags) {
  return flags.tracker.empty() ? OkStatus() : ParseHostPort(flags.tracker).status();
}

}  // namespace kiln
