// kiln db restore puts a backup in the place of the database file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "base/json/json_cursor.h"
#include "base/text/counted.h"
#include "client/cli/database/commands.h"
#include "client/cli/database/database_text.h"
#include "client/cli/session_flags.h"
#include "scheduler/database_lock.h"
#include "store/backup.h"

namespace kiln::client {
namespace {

StatusOr<int> Restore(const std::string& file, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto lock, scheduler::DatabaseLock::Take(session.db));
  KILN_ASSIGN_OR_RETURN(const store::DatabaseReport report, CheckAllOf(file));
  if (!report.findings.empty()) {
    PrintReport(report, file, session);
    return DataLoss("{} was not restored, because the check found the above; give another backup",
                    file);
  }
  KILN_ASSIGN_OR_RETURN(const store::Restored restored,
                        store::RestoreDatabase(file, session.db, absl::Now()));
  if (session.json) {
    fmt::print("{{\"file\":{},\"kept\":{},\"bytes\":{},\"records\":{},\"jobs\":{}}}\n",
               JsonQuote(session.db), JsonQuote(restored.kept), restored.size.bytes,
               restored.size.records, restored.size.jobs);
    return 0;
  }
  fmt::print("{} holds {} and {} of {}\n", session.db, Counted(restored.size.records, "record"),
             Counted(restored.size.jobs, "job"), file);
  if (!restored.kept.empty()) fmt::print("the file before is kept as {}\n", restored.kept);
  return 0;
}

}  // namespace

Run AddDbRestore(CLI::App& restore, SessionFlags& session) {
  const auto file = std::make_shared<std::string>();
  restore.description("put a backup in the place of the database, which is kept beside it");
  restore.add_option("file", *file, "the file of the backup")->required();
  session.AddDatabase(restore);
  return [file](const Session& session) { return Restore(*file, session); };
}

}  // namespace kiln::client
