// kiln db check reads a whole database file and says what is wrong with it.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "client/cli/database/commands.h"
#include "client/cli/database/database_text.h"
#include "client/cli/session_flags.h"

namespace kiln::client {
namespace {

StatusOr<int> Check(const std::string& file, const Session& session) {
  const std::string& path = file.empty() ? session.db : file;
  KILN_ASSIGN_OR_RETURN(const store::DatabaseReport report, CheckAllOf(path));
  PrintReport(report, path, session);
  return report.findings.empty() ? 0 : 1;
}

}  // namespace

Run AddDbCheck(CLI::App& check, SessionFlags& session) {
  const auto file = std::make_shared<std::string>();
  check.description("check a database file: pages, references, schema, and each text in it");
  check.add_option("file", *file, "the file, for instance a backup; without it the database");
  session.AddDatabase(check);
  return [file](const Session& session) { return Check(*file, session); };
}

}  // namespace kiln::client
