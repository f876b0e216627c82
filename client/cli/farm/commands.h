// kiln farm runs a whole farm on this machine, in the background.
#pragma once

#include "client/cli/command.h"

namespace kiln::client {

Run AddFarmUp(CLI::App& up, SessionFlags& session);
Run AddFarmStatus(CLI::App& status, SessionFlags& session);
Run AddFarmDown(CLI::App& down, SessionFlags& session);
// Supervises the farm in this process, until a signal ends it. `up` starts it in the background.
Run AddFarmSupervise(CLI::App& supervise, SessionFlags& session);

}  // namespace kiln::client
