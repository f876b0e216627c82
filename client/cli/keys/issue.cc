// kiln keys issue makes the keys of people and daemons.
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

struct IssueFlags {
  std::vector<std::string> names;
  std::string role;
  int days = kDefaultDays;
  bool replace = false;
  std::string authority = kDefaultAuthority;
};

Status IssueKeys(const IssueFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const Role role, ParseRole(flags.role));
  // A wrong name is refused before anything is made.
  for (const std::string& name : flags.names) KILN_RETURN_IF_ERROR(CheckMemberName(name));
  KILN_ASSIGN_OR_RETURN(AuthorityFolder folder, AuthorityFolder::Open(flags.authority, {}));
  for (const std::string& name : flags.names) {
    KILN_ASSIGN_OR_RETURN(const Issued issued,
                          folder.Issue({name, role}, flags.days, flags.replace));
    PrintIssued(folder, issued, Clock::Real().Now(), session.json);
  }
  return OkStatus();
}

}  // namespace

Run AddKeysIssue(CLI::App& issue, SessionFlags& session) {
  const auto flags = std::make_shared<IssueFlags>();
  issue.description(
      "make a key with a certificate for a machine or a person, in a folder of theirs");
  AddNames(issue, flags->names, "whom they are for: box1, alice");
  issue
      .add_option("--role", flags->role,
                  "what they may do: read; submit jobs; work, for daemons; operate everybody's "
                  "jobs; admin")
      ->required()
      ->type_name("ROLE");
  AddDays(issue, flags->days);
  issue.add_flag("--replace", flags->replace,
                 "revoke what the name has, for instance another role");
  AddAuthority(issue, flags->authority);
  session.AddJson(issue);
  return Plain([flags](const Session& session) { return IssueKeys(*flags, session); });
}

}  // namespace kiln::client
