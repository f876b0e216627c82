// kiln keys renew makes new keys with the same names and roles.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/keys/authority_folder.h"
#include "client/cli/keys/commands.h"
#include "client/cli/keys/keys_text.h"
#include "client/cli/session_flags.h"
#include "client/session.h"

namespace kiln::client {
namespace {

struct RenewFlags {
  std::vector<std::string> names;
  int days = kDefaultDays;
  std::string authority = kDefaultAuthority;
};

Status RenewKeys(const RenewFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(AuthorityFolder folder, AuthorityFolder::Open(flags.authority, {}));
  for (const std::string& name : flags.names) {
    KILN_ASSIGN_OR_RETURN(const Issued issued, folder.Renew(name, flags.days));
    PrintIssued(folder, issued, Clock::Real().Now(), session.json);
  }
  return OkStatus();
}

}  // namespace

Run AddKeysRenew(CLI::App& renew, SessionFlags& session) {
  const auto flags = std::make_shared<RenewFlags>();
  renew.description("make a new key with the same name and role; the old one holds until its end");
  AddNames(renew, flags->names, "whose keys: box1, alice");
  AddDays(renew, flags->days);
  AddAuthority(renew, flags->authority);
  session.AddJson(renew);
  return Plain([flags](const Session& session) { return RenewKeys(*flags, session); });
}

}  // namespace kiln::client
