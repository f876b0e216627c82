// The commands about compiled networks: files that run.
#pragma once

#include "client/cli/command.h"

namespace kiln::client {

Run AddCompile(CLI::App& compile, SessionFlags& session);
Run AddRun(CLI::App& run, SessionFlags& session);
Run AddVerify(CLI::App& verify, SessionFlags& session);
Run AddBench(CLI::App& bench, SessionFlags& session);

}  // namespace kiln::client
