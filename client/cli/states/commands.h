// The command that answers the questions of other programs about schedules.
#pragma once

#include "client/cli/command.h"

namespace kiln::client {

Run AddStates(CLI::App& states, SessionFlags& session);

}  // namespace kiln::client
