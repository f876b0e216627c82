// The commands about what can be tuned: operators, computations as texts, the tasks of networks.
#pragma once

#include "client/cli/command.h"

namespace kiln::client {

Run AddOps(CLI::App& ops, SessionFlags& session);
Run AddCheck(CLI::App& check, SessionFlags& session);
Run AddTasks(CLI::App& tasks, SessionFlags& session);

}  // namespace kiln::client
