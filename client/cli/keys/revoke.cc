// kiln keys revoke takes certificates back.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/keys/authority_folder.h"
#include "base/text/shell_word.h"
#include "client/cli/keys/commands.h"
#include "client/cli/keys/keys_text.h"
#include "client/cli/session_flags.h"
#include "client/session.h"

namespace kiln::client {
namespace {

struct RevokeFlags {
  std::vector<std::string> names;
  std::string authority = kDefaultAuthority;
};

Status RevokeKeys(const RevokeFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(AuthorityFolder folder, AuthorityFolder::Open(flags.authority, {}));
  for (const std::string& name : flags.names) {
    KILN_ASSIGN_OR_RETURN(const Revoked revoked, folder.Revoke(name));
    for (const Issued& issued : revoked.certificates) {
      if (session.json) {
        fmt::print("{}\n", IssuedJson(issued, Clock::Real().Now()));
      } else {
        fmt::print("revoked the certificate {} of {}, role {}{}\n", issued.identity.serial,
                   issued.identity.name, RoleName(issued.identity.role),
                   revoked.earlier ? fmt::format(", already on {}", UtcText(*issued.revoked)) : "");
      }
    }
  }
  if (session.json) return OkStatus();
  fmt::print(
      "The folders in {} have the new list. Copy the file revoked.pem of any of them into the\n"
      "folders that are on other machines.\n",
      ShellWord(flags.authority));
  return OkStatus();
}

}  // namespace

Run AddKeysRevoke(CLI::App& revoke, SessionFlags& session) {
  const auto flags = std::make_shared<RevokeFlags>();
  revoke.description("take back the certificates of a name, or one by its serial number");
  AddNames(revoke, flags->names, "a name, or a serial number of kiln keys list");
  AddAuthority(revoke, flags->authority);
  session.AddJson(revoke);
  return Plain([flags](const Session& session) { return RevokeKeys(*flags, session); });
}

}  // namespace kiln::client
