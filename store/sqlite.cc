#include "store/sqlite.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>

namespace kiln::store::sqlite {

// ----------------------------------------------------------------------------------------------
// Statement

Status Statement::BindOne(int index, std::string_view text) {
  // A null pointer would bind NULL, and an empty view may hold one.
  const char* data = text.data() == nullptr ? "" : text.data();
  return database_->Error(sqlite3_bind_text64(statement_.get(), index, data, text.size(),
                                              SQLITE_TRANSIENT, SQLITE_UTF8));
}

Status Statement::BindOne(int index, BorrowedText borrowed) {
  const char* data = borrowed.text.data() == nullptr ? "" : borrowed.text.data();
  return database_->Error(sqlite3_bind_text64(statement_.get(), index, data, borrowed.text.size(),
                                              SQLITE_STATIC, SQLITE_UTF8));
}

Status Statement::BindOne(int index, Blob blob) {
  const char* data = blob.bytes.data() == nullptr ? "" : blob.bytes.data();
  return database_->Error(
      sqlite3_bind_blob64(statement_.get(), index, data, blob.bytes.size(), SQLITE_TRANSIENT));
}

Status Statement::BindOne(int index, double value) {
  return database_->Error(sqlite3_bind_double(statement_.get(), index, value));
}

Status Statement::BindOne(int index, std::nullptr_t) {
  return database_->Error(sqlite3_bind_null(statement_.get(), index));
}

Status Statement::BindInt(int index, int64_t value) {
  return database_->Error(sqlite3_bind_int64(statement_.get(), index, value));
}

void Statement::Release::operator()(sqlite3_stmt* statement) const { database->Keep(statement); }

StatusOr<bool> Statement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->Error(code);
}

Status Statement::Run() {
  StatusOr<bool> row = Step();
  Reset();
  return row.status();
}

void Statement::Reset() { sqlite3_reset(statement_.get()); }

double Statement::Double(int column) const {
  if (IsNull(column)) return std::numeric_limits<double>::quiet_NaN();
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::Text(int column) const {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const int size_bytes = sqlite3_column_bytes(statement_.get(), column);
  if (data == nullptr) return {};
  return std::string(static_cast<const char*>(data), size_bytes);
}

bool Statement::IsNull(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

// -----------------------------------------------------------------------------------------------
// Database

namespace {

int OpenFlags(OpenOptions::Mode mode) {
  switch (mode) {
    case OpenOptions::Mode::kCreate:
      return SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    case OpenOptions::Mode::kReadWrite:
      return SQLITE_OPEN_READWRITE;
    case OpenOptions::Mode::kReadOnly:
      return SQLITE_OPEN_READONLY;
  }
  return 0;
}

// Length at which the write-ahead log is taken into the database, and to which it is then cut. On a
// small disk the log must not take the space that the database needs to grow.
constexpr int kLogPages = 256;
constexpr int kLogBytes = 1 << 20;

Status ReadOnly(std::string_view path) {
  return FailedPrecondition(
      "{} is read-only; make the file and its folder writable, or give another path", path);
}

}  // namespace

Status Database::Error(int code) const {
  if (code == SQLITE_OK) return OkStatus();
  const std::string_view reason = sqlite3_errmsg(handle_.get());
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      return FailedPrecondition("{} is not a Kiln database ({}); give another path", path_, reason);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Unavailable(
          "{} is locked by another process (waited {} ms); try again, or end that process", path_,
          options_.busy_timeout_ms);
    case SQLITE_FULL:
      return ResourceExhausted("no space left for {} ({}); free some and try again", path_, reason);
    case SQLITE_NOMEM:
      return ResourceExhausted("out of memory while using {}", path_);
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return ReadOnly(path_);
    case SQLITE_CANTOPEN: {
      const int os_error = sqlite3_system_errno(handle_.get());
      return NotFound("cannot open {} ({})", path_,
                      os_error != 0 ? std::string_view(std::strerror(os_error)) : reason);
    }
    case SQLITE_CORRUPT:
      return DataLoss(
          "{} is damaged ({}); restore a copy, or recover it with `sqlite3 {} .recover`", path_,
          reason, path_);
    case SQLITE_IOERR: {
      const int os_error = sqlite3_system_errno(handle_.get());
      return Unavailable("cannot read or write {} ({}: {})", path_, reason,
                         os_error != 0 ? std::strerror(os_error) : "no cause given");
    }
    case SQLITE_TOOBIG:
      return InvalidArgument("{}: value too large for the database", path_);
    case SQLITE_CONSTRAINT:
      if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY) {
        return AlreadyExists("{}: {}", path_, reason);
      }
      return InvalidArgument("{}: {}", path_, reason);
    default:
      return Internal("{}: {} (sqlite {})", path_, reason, code);
  }
}

StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path, int32_t application_id,
                                                   const OpenOptions& options) {
  // SQLite takes "" for a temporary file of its own, which would vanish at the end.
  if (path.empty())
    return InvalidArgument("the path of the database is empty, expected a file name");
  sqlite3* handle = nullptr;
  const int flags = OpenFlags(options.mode) | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  if (handle == nullptr) return ResourceExhausted("out of memory while opening {}", path);
  std::unique_ptr<Database> database(new Database(path, handle, options));
  KILN_RETURN_IF_ERROR(database->Error(code));
  KILN_RETURN_IF_ERROR(database->CheckOneName());
  KILN_RETURN_IF_ERROR(database->Error(sqlite3_busy_timeout(handle, options.busy_timeout_ms)));
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  KILN_RETURN_IF_ERROR(database->CheckOwner(application_id));
  KILN_RETURN_IF_ERROR(database->Configure(application_id));
  return database;
}

Status Database::CheckOneName() const {
  struct stat file;
  if (stat(path_.c_str(), &file) != 0 || !S_ISREG(file.st_mode) || file.st_nlink <= 1) {
    return OkStatus();
  }
  return FailedPrecondition(
      "{0} has {1} names (hard links), expected one: SQLite keeps its log beside one name, and who "
      "opens the other spoils the file; find them with `find -samefile {0}` and remove all but "
      "one, "
      "or copy the database with `sqlite3 {0} \"VACUUM INTO 'copy.db'\"`",
      path_, file.st_nlink);
}

// Only reads, so that a foreign file stays unchanged.
Status Database::CheckOwner(int32_t application_id) {
  KILN_ASSIGN_OR_RETURN(const int64_t tables, QueryInt("SELECT count(*) FROM sqlite_schema"));
  KILN_ASSIGN_OR_RETURN(const int64_t found, QueryInt("PRAGMA application_id"));
  if (found == application_id) return OkStatus();
  if (tables == 0 && found == 0) {
    if (options_.mode == OpenOptions::Mode::kCreate) return OkStatus();
    return FailedPrecondition("{} is not a Kiln database (the file is empty); give another path",
                              path_);
  }
  return FailedPrecondition(
      "{} is not a Kiln database (application id {:#x}, expected {:#x}); give another path", path_,
      found, application_id);
}

Status Database::Configure(int32_t application_id) {
  KILN_RETURN_IF_ERROR(Execute("PRAGMA foreign_keys=ON"));
  if (options_.mode == OpenOptions::Mode::kReadOnly) return OkStatus();
  // SQLite falls back to reading if it may not write.
  if (sqlite3_db_readonly(handle_.get(), "main") == 1) return ReadOnly(path_);
  KILN_RETURN_IF_ERROR(SwitchToWal());
  KILN_RETURN_IF_ERROR(Execute("PRAGMA synchronous=FULL"));
  KILN_RETURN_IF_ERROR(Execute(fmt::format("PRAGMA wal_autocheckpoint={}", kLogPages).c_str()));
  KILN_RETURN_IF_ERROR(Execute(fmt::format("PRAGMA journal_size_limit={}", kLogBytes).c_str()));
  KILN_ASSIGN_OR_RETURN(const int64_t found, QueryInt("PRAGMA application_id"));
  if (found == application_id) return OkStatus();
  return Execute(fmt::format("PRAGMA application_id={}", application_id).c_str());
}

// SQLite does not call the busy handler while the journal mode changes: two processes that open a
// new file at once must wait for each other here.
Status Database::SwitchToWal() {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(options_.busy_timeout_ms);
  while (true) {
    StatusOr<Statement> pragma = Prepare("PRAGMA journal_mode=WAL");
    Status status = pragma.status();
    if (status.ok()) {
      StatusOr<bool> row = pragma->Step();
      status = row.status();
      if (status.ok() && pragma->Text(0) != "wal") {
        return FailedPrecondition(
            "{}: this file system does not support write-ahead logging (journal mode stays {}); "
            "use a local disk",
            path_, pragma->Text(0));
      }
    }
    const bool busy = status.code() == StatusCode::kUnavailable;
    if (!busy || std::chrono::steady_clock::now() >= deadline) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Status Database::CheckInPlace() const {
  int moved = 0;
  sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved == 0) {
    const Status one_name = CheckOneName();
    return one_name.ok() ? OkStatus() : Unavailable("{}", Message(one_name));
  }
  return Unavailable(
      "{} was deleted or replaced while it is in use, and what is written now would be lost; put "
      "the file back, or stop this process",
      path_);
}

void Database::MakeRoom() { Execute("PRAGMA wal_checkpoint(PASSIVE)").IgnoreError(); }

Status Database::CopyTo(const std::string& to) {
  constexpr int kPagesPerStep = 256;
  KILN_CHECK(in_transaction(), "{} is copied outside of a transaction", path_);
  struct stat file;
  if (lstat(to.c_str(), &file) == 0) return AlreadyExists("{} exists already", to);
  sqlite3* handle = nullptr;
  const int flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int opened = sqlite3_open_v2(to.c_str(), &handle, flags, nullptr);
  if (handle == nullptr) return ResourceExhausted("out of memory while making {}", to);
  Database copy(to, handle, {});
  KILN_RETURN_IF_ERROR(copy.Error(opened));
  sqlite3_backup* const backup = sqlite3_backup_init(handle, "main", handle_.get(), "main");
  if (backup == nullptr) return copy.Error(sqlite3_extended_errcode(handle));
  int code = SQLITE_OK;
  while (code == SQLITE_OK) code = sqlite3_backup_step(backup, kPagesPerStep);
  const int finished = sqlite3_backup_finish(backup);
  if (code != SQLITE_DONE) return copy.Error(finished != SQLITE_OK ? finished : code);
  KILN_RETURN_IF_ERROR(copy.Error(finished));
  return copy.Execute("PRAGMA journal_mode=DELETE");
}

Status Database::Execute(const char* sql) {
  return Error(sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr));
}

StatusOr<Statement> Database::Prepare(std::string_view sql) {
  if (const auto kept = kept_.find(sql); kept != kept_.end()) {
    const auto node = kept_.extract(kept);
    return Statement(this, node.mapped().release());
  }
  sqlite3_stmt* statement = nullptr;
  KILN_RETURN_IF_ERROR(
      Error(sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                               SQLITE_PREPARE_PERSISTENT, &statement, nullptr)));
  return Statement(this, statement);
}

// The statement is reset: otherwise it would hold its snapshot, and its bindings would hold memory.
void Database::Keep(sqlite3_stmt* statement) {
  constexpr size_t kMaxKept = 128;
  std::unique_ptr<sqlite3_stmt, Finalize> owned(statement);
  if (kept_.size() >= kMaxKept) return;
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  kept_.try_emplace(sqlite3_sql(statement), std::move(owned));
}

StatusOr<int64_t> Database::QueryInt(std::string_view sql) {
  KILN_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  KILN_ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return Internal("{}: no row from `{}`", path_, sql);
  return statement.Int(0);
}

// --------------------------------------------------------------------------------------------
// Transaction

StatusOr<Transaction> Transaction::Begin(Database& database) {
  KILN_CHECK(!database.in_transaction(), "a transaction is open on {}", database.path());
  KILN_RETURN_IF_ERROR(database.CheckInPlace());
  KILN_RETURN_IF_ERROR(database.Execute("BEGIN IMMEDIATE"));
  return Transaction(&database);
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  if (database_ == nullptr) return;
  const int code = sqlite3_errcode(database_->handle_.get()) & 0xff;
  // SQLite itself rolls back on some errors (disk full); a second ROLLBACK would only fail.
  if (database_->in_transaction()) database_->Execute("ROLLBACK").IgnoreError();
  // A log that fills the disk would keep it full.
  if (code == SQLITE_FULL || code == SQLITE_IOERR) database_->MakeRoom();
}

Status Transaction::Commit() {
  KILN_CHECK(database_ != nullptr, "transaction committed twice");
  KILN_RETURN_IF_ERROR(database_->CheckInPlace());
  KILN_RETURN_IF_ERROR(database_->Execute("COMMIT"));
  database_ = nullptr;
  return OkStatus();
}

// ----------------------------------------------------------------------------------------------
// migration

namespace {

// Returns the schema version of the file, and refuses a version that this Kiln does not know.
StatusOr<int64_t> CheckVersion(Database& database, int64_t known) {
  KILN_ASSIGN_OR_RETURN(const int64_t found, database.QueryInt("PRAGMA user_version"));
  if (found < 0) {
    return DataLoss("{} is damaged: it says that its schema is {}; restore a copy", database.path(),
                    found);
  }
  if (found > known) {
    return FailedPrecondition(
        "{} was made by a newer Kiln (schema {}, this one knows {}); use that Kiln, put a backup "
        "from "
        "before its upgrade back with kiln db restore, or give another path",
        database.path(), found, known);
  }
  return found;
}

}  // namespace

Status CheckSchemaIsOurs(Database& database, std::span<const char* const> migrations) {
  KILN_ASSIGN_OR_RETURN(
      Statement others,
      database.Prepare(
          "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('view', 'trigger') "
          "OR sql LIKE 'create virtual%'"));
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool row, others.Step());
    if (!row) return OkStatus();
    // SQLite keeps the statement that made the entry exactly as it was written.
    const std::string sql = others.Text(2);
    const bool ours = others.Text(0) == "trigger" && !sql.empty() &&
                      std::ranges::any_of(migrations, [&](std::string_view migration) {
                        return migration.find(sql) != std::string_view::npos;
                      });
    if (ours) continue;
    const std::string type = others.Text(0), name = others.Text(1);
    return FailedPrecondition(
        "{0} has the {1} '{2}', expected none but Kiln's own: it could change what Kiln reads and "
        "writes; remove it with `sqlite3 {0} 'DROP {1} \"{2}\"'`, or give another path",
        database.path(), type, name);
  }
}

namespace {

// Turns checks off while it lives. SQLite looks at all rows when a column with a check is added,
// and a row that somebody else has spoiled is no reason to refuse the file.
class DisabledChecks {
 public:
  explicit DisabledChecks(Database& database) : database_(database) {
    database_.Execute("PRAGMA ignore_check_constraints=ON").IgnoreError();
  }
  DisabledChecks(const DisabledChecks&) = delete;
  DisabledChecks& operator=(const DisabledChecks&) = delete;
  ~DisabledChecks() { database_.Execute("PRAGMA ignore_check_constraints=OFF").IgnoreError(); }

 private:
  Database& database_;
};

}  // namespace

Status Migrate(Database& database, std::span<const char* const> migrations, bool read_only) {
  const auto known = static_cast<int64_t>(migrations.size());
  KILN_ASSIGN_OR_RETURN(int64_t version, CheckVersion(database, known));
  if (version == known) return OkStatus();
  if (read_only) {
    return FailedPrecondition(
        "{} was made by an older Kiln (schema {}, this one needs {}); open it once for writing",
        database.path(), version, known);
  }
  const DisabledChecks without_checks(database);
  KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  // Another process may have migrated the file while this process waited for the lock.
  KILN_ASSIGN_OR_RETURN(version, CheckVersion(database, known));
  for (; version < known; ++version) {
    KILN_RETURN_IF_ERROR(Annotate(database.Execute(migrations[version]),
                                  fmt::format("migrating to schema {}", version + 1)));
  }
  KILN_RETURN_IF_ERROR(database.Execute(fmt::format("PRAGMA user_version={}", known).c_str()));
  return transaction.Commit();
}

std::string Version() { return sqlite3_libversion(); }

}  // namespace kiln::store::sqlite
