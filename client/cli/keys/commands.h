// kiln keys makes the certificates of a farm and takes them back.
#pragma once

#include "client/cli/command.h"

namespace kiln::client {

Run AddKeysInit(CLI::App& init, SessionFlags& session);
Run AddKeysIssue(CLI::App& issue, SessionFlags& session);
Run AddKeysList(CLI::App& list, SessionFlags& session);
Run AddKeysRevoke(CLI::App& revoke, SessionFlags& session);
Run AddKeysRenew(CLI::App& renew, SessionFlags& session);

}  // namespace kiln::client
