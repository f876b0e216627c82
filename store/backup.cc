#include "store/backup.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/errno_status.h"
#include "base/file/fd.h"
#include "base/file/file.h"
#include "base/hash/unique_id.h"
#include "store/schema.h"
#include "store/sqlite.h"

namespace kiln::store {
namespace {

using sqlite::Database;
using sqlite::OpenOptions;
using sqlite::Statement;

// Returns 0 for a table that the schema of the file does not have.
StatusOr<int64_t> CountRows(Database& database, std::string_view table) {
  KILN_ASSIGN_OR_RETURN(
      const int64_t tables,
      database.QueryInt(fmt::format(
          "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '{}'", table)));
  if (tables == 0) return 0;
  return database.QueryInt(fmt::format("SELECT count(*) FROM {}", table));
}

StatusOr<std::unique_ptr<Database>> OpenToRead(const std::string& path) {
  return Database::Open(path, kApplicationId, {.mode = OpenOptions::Mode::kReadOnly});
}

// Copies one state of `from` to the new file `to`. Returns the counts of that state.
StatusOr<DatabaseSize> Copy(const std::string& from, const std::string& to) {
  KILN_ASSIGN_OR_RETURN(const auto source, OpenToRead(from));
  KILN_RETURN_IF_ERROR(source->Execute("BEGIN"));
  KILN_ASSIGN_OR_RETURN(const DatabaseSize size, SizeOf(*source));
  KILN_RETURN_IF_ERROR(source->CopyTo(to));
  KILN_RETURN_IF_ERROR(source->Execute("ROLLBACK"));
  return size;
}

// Checks the structure of a copy, and that it holds what the source held.
Status CheckCopy(const std::string& copy, const std::string& from, const DatabaseSize& expected) {
  KILN_ASSIGN_OR_RETURN(const auto database, OpenToRead(copy));
  KILN_ASSIGN_OR_RETURN(Statement check, database->Prepare("PRAGMA integrity_check(1)"));
  KILN_ASSIGN_OR_RETURN(const bool row, check.Step());
  if (!row || check.Text(0) != "ok") {
    return DataLoss("{} is damaged ({}), and a copy of it would be too; kiln db check {} says more",
                    from, row ? check.Text(0) : "no answer", from);
  }
  KILN_ASSIGN_OR_RETURN(const DatabaseSize found, SizeOf(*database));
  if (found.schema == expected.schema && found.jobs == expected.jobs &&
      found.records == expected.records) {
    return OkStatus();
  }
  return DataLoss("the copy of {} has {} records and {} jobs, expected {} and {}; try again", from,
                  found.records, found.jobs, expected.records, expected.jobs);
}

Status SyncFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::absolute(path).parent_path().string();
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || fsync(fd.get()) != 0) return ErrnoStatus(errno, "cannot sync {}", folder);
  return OkStatus();
}

StatusOr<DatabaseSize> CheckedCopy(const std::string& from, const std::string& to) {
  KILN_ASSIGN_OR_RETURN(DatabaseSize size, Copy(from, to));
  KILN_RETURN_IF_ERROR(CheckCopy(to, from, size));
  KILN_ASSIGN_OR_RETURN(size.bytes, FileSize(to));
  return size;
}

// Removes a file, if it is there, when it is destroyed.
class Removal {
 public:
  explicit Removal(std::string path) : path_(std::move(path)) {}
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;
  ~Removal() { RemoveFile(path_).IgnoreError(); }

 private:
  const std::string path_;
};

std::string TemporaryFor(const std::string& path) {
  return fmt::format("{}.part-{}", path, UniqueId());
}

// Takes the write-ahead log into the file, so that the file is whole by itself. A damaged file
// keeps its log.
void TakeInLog(const std::string& path) {
  const auto database =
      Database::Open(path, kApplicationId, {.mode = OpenOptions::Mode::kReadWrite});
  if (database.ok()) (*database)->Execute("PRAGMA wal_checkpoint(TRUNCATE)").IgnoreError();
}

Status Rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return OkStatus();
  return ErrnoStatus(errno, "cannot rename {} to {}", from, to);
}

// Gives the file `path` the second name `kept`, and moves its log there. The file itself may be
// gone already. A file under the name `path` must never meet the log of another file: SQLite would
// write that log into it.
Status KeepAside(const std::string& path, const std::string& kept) {
  const bool is_there = FileExists(path);
  if (is_there) TakeInLog(path);
  for (const char* const suffix : {"-wal", "-shm", "-journal"}) {
    if (FileExists(path + suffix)) KILN_RETURN_IF_ERROR(Rename(path + suffix, kept + suffix));
  }
  if (!is_there || link(path.c_str(), kept.c_str()) == 0) return OkStatus();
  return ErrnoStatus(errno, "cannot keep {} as {}", path, kept);
}

// Refuses to put a file beside the log of another one.
Status CheckHasNoLog(const std::string& path) {
  for (const char* const suffix : {"-wal", "-journal"}) {
    if (!FileExists(path + suffix)) continue;
    return FailedPrecondition(
        "{}{} is the log of a database that is open, or whose process was killed, and SQLite would "
        "write it into the backup; give the backup another name",
        path, suffix);
  }
  return OkStatus();
}

}  // namespace

StatusOr<DatabaseSize> SizeOf(Database& database) {
  DatabaseSize size;
  KILN_ASSIGN_OR_RETURN(size.schema, database.QueryInt("PRAGMA user_version"));
  KILN_ASSIGN_OR_RETURN(size.jobs, CountRows(database, "jobs"));
  KILN_ASSIGN_OR_RETURN(size.records, CountRows(database, "records"));
  KILN_ASSIGN_OR_RETURN(const int64_t of_autotvm, CountRows(database, "autotvm_records"));
  size.records += of_autotvm;
  return size;
}

StatusOr<DatabaseSize> BackUpDatabase(const std::string& from, const std::string& to,
                                      bool replace) {
  std::error_code error;
  if (std::filesystem::equivalent(from, to, error)) {
    return InvalidArgument("{} is the database itself; give the backup another name", to);
  }
  if (!replace && FileExists(to)) {
    return AlreadyExists("{} exists already; give another name, or say --replace", to);
  }
  KILN_RETURN_IF_ERROR(CheckHasNoLog(to));
  const std::string temporary = TemporaryFor(to);
  const Removal removal(temporary);
  KILN_ASSIGN_OR_RETURN(const DatabaseSize size, CheckedCopy(from, temporary));
  // A link fails if somebody else has made the file meanwhile, and a rename replaces it.
  if (replace) {
    KILN_RETURN_IF_ERROR(Rename(temporary, to));
  } else if (link(temporary.c_str(), to.c_str()) != 0) {
    return ErrnoStatus(errno, "cannot make {}", to);
  }
  KILN_RETURN_IF_ERROR(SyncFolderOf(to));
  return size;
}

StatusOr<Restored> RestoreDatabase(const std::string& from, const std::string& to, absl::Time now) {
  std::error_code error;
  if (std::filesystem::equivalent(from, to, error)) {
    return InvalidArgument("{} is the database itself; give the file of a backup", from);
  }
  const std::string place = FileExists(to) ? std::filesystem::canonical(to, error).string() : to;
  if (error) return NotFound("cannot find the place of {}: {}", to, error.message());
  Restored restored;
  const std::string temporary = TemporaryFor(place);
  const Removal removal(temporary);
  KILN_ASSIGN_OR_RETURN(restored.size, CheckedCopy(from, temporary));
  const std::string kept = fmt::format(
      "{}.before-{}", place, absl::FormatTime("%Y%m%dT%H%M%E3S", now, absl::UTCTimeZone()));
  if (FileExists(place)) restored.kept = kept;
  KILN_RETURN_IF_ERROR(KeepAside(place, kept));
  KILN_RETURN_IF_ERROR(Rename(temporary, place));
  KILN_RETURN_IF_ERROR(SyncFolderOf(place));
  return restored;
}

}  // namespace kiln::store
