// kiln db backup copies the database file while others write to it.
#include "store/backup.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/json/json_cursor.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "client/cli/database/commands.h"
#include "client/cli/session_flags.h"

namespace kiln::client {
namespace {

struct BackupFlags {
  std::string file;
  // True: a file of this name is replaced.
  bool replace = false;
};

Status BackUp(const BackupFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const store::DatabaseSize size,
                        store::BackUpDatabase(session.db, flags.file, flags.replace));
  if (session.json) {
    fmt::print("{{\"file\":{},\"bytes\":{},\"records\":{},\"jobs\":{},\"schema\":{}}}\n",
               JsonQuote(flags.file), size.bytes, size.records, size.jobs, size.schema);
    return OkStatus();
  }
  fmt::print("{} holds {} and {} of {} ({}); the copy was checked\n", flags.file,
             Counted(size.records, "record"), Counted(size.jobs, "job"), session.db,
             FormatBytes(size.bytes));
  return OkStatus();
}

}  // namespace

Run AddDbBackup(CLI::App& backup, SessionFlags& session) {
  const auto flags = std::make_shared<BackupFlags>();
  backup.description("copy the database to a file, also while a scheduler writes to it");
  backup.add_option("file", flags->file, "the file of the copy")->required();
  backup.add_flag("--replace", flags->replace, "replace a file of this name");
  session.AddDatabase(backup);
  return Plain([flags](const Session& session) { return BackUp(*flags, session); });
}

}  // namespace kiln::client
