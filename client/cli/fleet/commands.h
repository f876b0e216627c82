// kiln fleet keeps workers of a farm alive on machines that something else gives out.
#pragma once

#include "client/cli/command.h"

namespace kiln::client {

// Workers as jobs of Slurm, as many as the farm's queue needs.
Run AddFleetSlurm(CLI::App& slurm, SessionFlags& session);

}  // namespace kiln::client
