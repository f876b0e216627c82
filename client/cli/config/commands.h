// The command about the configuration file of the daemons.
#pragma once

#include "client/cli/command.h"

namespace kiln::client {

Run AddConfig(CLI::App& config, SessionFlags& session);

}  // namespace kiln::client
