// kiln users and kiln audit: what users may have and have had, and who did what.
#pragma once

#include "client/cli/command.h"

namespace kiln::client {

Run AddUsersList(CLI::App& list, SessionFlags& session);
Run AddUsersSet(CLI::App& set, SessionFlags& session);
Run AddAudit(CLI::App& audit, SessionFlags& session);

}  // namespace kiln::client
