// Flags that every worker daemon has: where it serves, how schedulers reach it, and its tracker.
//
// All functions belong to main's thread.
#pragma once

#include <string>
#include <string_view>

#include "base/server/daemon_program.h"
#include "base/status.h"

namespace kiln {

// A worker serves on any free port of the loopback if the command line says nothing.
struct WorkerFlags : DaemonFlags {
  WorkerFlags() { listen = "127.0.0.1:0"; }

  // HOST:PORT; empty: the address of `listen` (rpc/worker_server.h).
  std::string advertise;
  // HOST:PORT; empty: the worker announces itself to nobody.
  std::string tracker;
  bool require_sandbox = false;
  // Word at the end of the worker's id; empty: the id is random alone.
  std::string name;
};

// Most bytes of --name.
inline constexpr size_t kLongestWorkerName = 96;

// Adds --listen, --advertise, --tracker, --require-sandbox and --name. `worker` is the worker's
// noun in the help: "builder".
void AddWorkerFlags(CLI::App& app, WorkerFlags& flags, std::string_view worker,
                    std::string_view listen_help = kListenHelp);

// InvalidArgument if --tracker is no HOST:PORT, or --name is no word.
Status CheckWorkerFlags(const WorkerFlags& flags);

// Returns "ID.NAME", or `id` if the worker has no name.
std::string NamedWorkerId(std::string id, const WorkerFlags& flags);

}  // namespace kiln
