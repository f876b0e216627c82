#include "rpc/worker_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/server/net.h"

namespace kiln {
namespace {

bool IsNameCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '_';
}

}  // namespace

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
  app.add_option("--name", flags.name,
                 fmt::format("word at the end of this {}'s id, by which `kiln workers drain` and "
                             "`kiln fleet` find it",
                             worker))
      ->type_name("WORD");
}

Status CheckWorkerFlags(const WorkerFlags& flags) {
  if (flags.name.size() > kLongestWorkerName || !std::ranges::all_of(flags.name, IsNameCharacter)) {
    return InvalidArgument(
        "--name takes at most {} letters, digits, '-' and '_', but is '{}'; choose such a word",
        kLongestWorkerName, flags.name);
  }
  return flags.tracker.empty() ? OkStatus() : ParseHostPort(flags.tracker).status();
}

std::string NamedWorkerId(std::string id, const WorkerFlags& flags) {
  if (flags.name.empty()) return id;
  return fmt::format("{}.{}", id, flags.name);
}

}  // namespace kiln
