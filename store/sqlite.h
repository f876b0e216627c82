// SQLite for Kiln: owning handles over its C API, Status instead of result codes.
//
// One Database is one connection. Not thread-safe: the caller locks around a connection and
// everything made from it. A Statement and a Transaction must not outlive their Database. A
// connection compiles each text once and keeps idle statements for later use.
//
// Durability: WAL with synchronous=FULL. When Commit() has returned OK, the transaction is on the
// disk and survives the death of the process and of the machine. Cost: one fsync per commit.
//
// Errors, all naming the file:
//   Unavailable         locked by another process for longer than the busy timeout; an I/O error;
//                       to a transaction: the file has been deleted or replaced since it was opened
//   ResourceExhausted   disk full, out of memory
//   FailedPrecondition  not a Kiln database, read-only, made by a newer Kiln; has a second name;
//                       has views, triggers or virtual tables that are not Kiln's
//   NotFound            no such file or folder
//   AlreadyExists       a UNIQUE or PRIMARY KEY constraint refused the row
//   InvalidArgument     another constraint refused the row; value too large
//   DataLoss            the file is damaged
//   Internal            wrong SQL: a Kiln bug
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>

#include "base/status.h"

namespace kiln::store::sqlite {

// Version of the loaded SQLite library: "3.40.1".
std::string Version();

// A text that is bound without a copy: it must live until the statement has run to its end.
struct BorrowedText {
  std::string_view text;
};

// Bytes bound as a BLOB; a std::string_view is bound as TEXT.
struct Blob {
  std::string_view bytes;
};

class Statement {
 public:
  // Binds all parameters, from the first on. Values are copied, but for BorrowedText. NaN is bound
  // as NULL (SQLite has no NaN), and a column gives -0.0 back as 0.0.
  template <typename... Values>
  Status Bind(const Values&... values) {
    int index = 0;
    Status status;
    ((status = status.ok() ? BindOne(++index, values) : status), ...);
    return status;
  }

  // Runs to the next row; false when there is none. After an error or false, call Reset() before
  // binding again.
  StatusOr<bool> Step();
  // Runs a statement that yields no rows, and resets it.
  Status Run();
  void Reset();

  // Values of the current row, columns from 0. REQUIRES: the last Step() returned true.
  int64_t Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  // NULL is NaN, see Bind.
  double Double(int column) const;
  // Returns all bytes of a TEXT or BLOB, embedded NULs included; NULL is "".
  std::string Text(int column) const;
  bool IsNull(int column) const;

 private:
  friend class Database;
  // Deleter that gives a statement back to its database.
  struct Release {
    class Database* database;
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(class Database* database, sqlite3_stmt* statement)
      : database_(database), statement_(statement, Release{database}) {}

  Status BindOne(int index, std::string_view text);
  Status BindOne(int index, BorrowedText borrowed);
  Status BindOne(int index, Blob blob);
  Status BindOne(int index, double value);
  Status BindOne(int index, std::nullptr_t);
  template <typename Value>
  Status BindOne(int index, const std::optional<Value>& value) {
    return value.has_value() ? BindOne(index, *value) : BindOne(index, nullptr);
  }
  Status BindInt(int index, int64_t value);
  template <typename Integer>
    requires std::is_integral_v<Integer>
  Status BindOne(int index, Integer value) {
    static_assert(sizeof(Integer) < 8 || std::is_signed_v<Integer>);
    return BindInt(index, value);
  }

  const class Database* database_;
  std::unique_ptr<sqlite3_stmt, Release> statement_;
};

struct OpenOptions {
  enum class Mode { kCreate, kReadWrite, kReadOnly };
  Mode mode = Mode::kCreate;
  int busy_timeout_ms = 10'000;
};

class Database {
 public:
  // Opens the connection and sets WAL, synchronous=FULL, foreign keys and the busy timeout. A file
  // that is not empty and has another application_id is refused untouched. A file with a second
  // name (a hard link) is refused too: the write-ahead log stands beside one name, and a process
  // that opens the other name would miss the log and spoil the file. Functions and tables that a
  // schema names are not trusted.
  static StatusOr<std::unique_ptr<Database>> Open(const std::string& path, int32_t application_id,
                                                  const OpenOptions& options);

  // Copies what the connection sees at the moment into a new file `to`, in steps of some pages.
  // Writers of other connections go on meanwhile, and the copy does not see them. The copy is
  // synced, and is one file without a write-ahead log. REQUIRES: a transaction is open, so that all
  // steps see the same state. AlreadyExists: there is such a file.
  Status CopyTo(const std::string& to);

  // Runs one or more statements without parameters or rows.
  Status Execute(const char* sql);
  StatusOr<Statement> Prepare(std::string_view sql);
  // Returns the first column of the first row as a number. The statement must yield a row.
  StatusOr<int64_t> QueryInt(std::string_view sql);

  int64_t last_insert_id() const { return sqlite3_last_insert_rowid(handle_.get()); }
  int64_t changes() const { return sqlite3_changes64(handle_.get()); }
  bool in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }
  const std::string& path() const { return path_; }
  // Unavailable if the path that was opened has no file any more, names another file, or the file
  // has got a second name. Writes to such a file are lost with the last handle; reads still find
  // everything.
  Status CheckInPlace() const;

 private:
  friend class Statement;
  friend class Transaction;
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  Database(std::string path, sqlite3* handle, const OpenOptions& options)
      : path_(std::move(path)), options_(options), handle_(handle) {}

  Status Error(int code) const;
  // Takes the write-ahead log into the database as far as there is room, and restarts the log.
  void MakeRoom();
  Status CheckOwner(int32_t application_id);
  Status CheckOneName() const;
  Status Configure(int32_t application_id);
  Status SwitchToWal();
  void Keep(sqlite3_stmt* statement);

  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };

  std::string path_;
  OpenOptions options_;
  std::unique_ptr<sqlite3, Close> handle_;
  // Idle statements by their text. The statement owns the text.
  std::unordered_map<std::string_view, std::unique_ptr<sqlite3_stmt, Finalize>> kept_;
};

// Runs BEGIN IMMEDIATE when it is made, so that no write fails half way for want of the lock. The
// destructor rolls back unless the transaction was committed.
class Transaction {
 public:
  static StatusOr<Transaction> Begin(Database& database);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  // OK means that the changes are durable. After an error nothing of the transaction is kept.
  Status Commit();

 private:
  explicit Transaction(Database* database) : database_(database) {}
  // Null once the transaction is over.
  Database* database_;
};

// FailedPrecondition if the schema has a view, a virtual table, or a trigger that stands in no
// migration: foreign ones would run in Kiln's name with each statement. Call it before Migrate,
// whose statements might run them.
Status CheckSchemaIsOurs(Database& database, std::span<const char* const> migrations);

// Brings the schema from `PRAGMA user_version` to migrations.size(), in one transaction: all or
// nothing. migrations[v] is the SQL that makes version v + 1 of version v. Entries are never
// edited, only appended. A file with a larger version is refused. A read-only connection is only
// checked.
Status Migrate(Database& database, std::span<const char* const> migrations, bool read_only);

}  // namespace kiln::store::sqlite
