// kiln db keeps the database file well: copies, checks, the way back, and what goes.
#pragma once

#include "client/cli/command.h"

namespace kiln::client {

Run AddDbBackup(CLI::App& backup, SessionFlags& session);
Run AddDbCheck(CLI::App& check, SessionFlags& session);
Run AddDbRestore(CLI::App& restore, SessionFlags& session);
Run AddDbPrune(CLI::App& prune, SessionFlags& session);

}  // namespace kiln::client
