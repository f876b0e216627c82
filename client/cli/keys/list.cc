// kiln keys list prints the certificates that were issued.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/console/terminal.h"
#include "base/keys/authority_folder.h"
#include "base/text/shell_word.h"
#include "client/cli/keys/commands.h"
#include "client/cli/keys/keys_text.h"
#include "client/cli/session_flags.h"
#include "client/session.h"

namespace kiln::client {
namespace {

// Least columns of a name in a table that is too wide.
constexpr int kMinColumns = 8;

struct ListFlags {
  std::string authority = kDefaultAuthority;
};

Status ListKeys(const ListFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const AuthorityFolder folder, AuthorityFolder::Open(flags.authority, {}));
  KILN_ASSIGN_OR_RETURN(const std::vector<Issued> all, folder.List());
  const absl::Time now = Clock::Real().Now();
  if (session.json) {
    for (const Issued& issued : all) fmt::print("{}\n", IssuedJson(issued, now));
    return OkStatus();
  }
  if (all.empty()) {
    fmt::print("no certificates in {}; {} keys issue NAME --role ROLE makes one\n",
               ShellWord(flags.authority), session.program);
    return OkStatus();
  }
  Table table(
      {{"Name", Table::kLeft, kMinColumns}, {"Role"}, {"Serial number"}, {"Until"}, {"State"}});
  for (const Issued& issued : all) {
    table.AddRow({issued.identity.name, std::string(RoleName(issued.identity.role)),
                  issued.identity.serial,
                  absl::FormatTime("%Y-%m-%d", issued.identity.expires, absl::UTCTimeZone()),
                  StateText(issued, now)});
  }
  fmt::print("{}", table.ToString(TerminalColumns(STDOUT_FILENO)));
  return OkStatus();
}

}  // namespace

Run AddKeysList(CLI::App& list, SessionFlags& session) {
  const auto flags = std::make_shared<ListFlags>();
  list.description("the certificates that were issued, and which of them hold");
  AddAuthority(list, flags->authority);
  session.AddJson(list);
  return Plain([flags](const Session& session) { return ListKeys(*flags, session); });
}

}  // namespace kiln::client
