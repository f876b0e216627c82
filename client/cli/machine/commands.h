// The commands about machines: what this one offers and gets right, and the workers of a farm.
#pragma once

#include "client/cli/command.h"

namespace kiln::client {

Run AddWorkers(CLI::App& workers, SessionFlags& session);
Run AddDoctor(CLI::App& doctor, SessionFlags& session);
Run AddSelfTest(CLI::App& selftest, SessionFlags& session);
Run AddConformance(CLI::App& conformance, SessionFlags& session);
Run AddDashboard(CLI::App& dashboard, SessionFlags& session);
Run AddVersion(CLI::App& version, SessionFlags& session);

}  // namespace kiln::client
