#include "store/sqlite.h"

#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/status_testing.h"
#include "store/folder_testing.h"

namespace kiln::store::sqlite {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

constexpr int32_t kId = 0x1234;

class SqliteTest : public testing::Test {
 protected:
  StatusOr<std::unique_ptr<Database>> Open(OpenOptions::Mode mode = OpenOptions::Mode::kCreate,
                                           int busy_timeout_ms = 50) {
    return Database::Open(path_, kId, {.mode = mode, .busy_timeout_ms = busy_timeout_ms});
  }

  TestFolder folder_;
  std::string path_ = folder_.File("x.db");
};

TEST_F(SqliteTest, OpensWithFullDurability) {
  ASSERT_OK_AND_ASSIGN(auto database, Open());
  ASSERT_OK_AND_ASSIGN(const int64_t synchronous, database->QueryInt("PRAGMA synchronous"));
  EXPECT_EQ(synchronous, 2);
  ASSERT_OK_AND_ASSIGN(const int64_t foreign_keys, database->QueryInt("PRAGMA foreign_keys"));
  EXPECT_EQ(foreign_keys, 1);
  ASSERT_OK_AND_ASSIGN(Statement mode, database->Prepare("PRAGMA journal_mode"));
  ASSERT_OK(mode.Step());
  EXPECT_EQ(mode.Text(0), "wal");
}

TEST_F(SqliteTest, ValuesComeBackAsTheyWere) {
  ASSERT_OK_AND_ASSIGN(auto database, Open());
  ASSERT_OK_AND_ASSIGN(Statement echo, database->Prepare("SELECT ?, ?, ?, ?, ?, ?, ?, ?"));
  const std::string text("a\0b\xff", 4);
  ASSERT_OK(echo.Bind(text, Blob{text}, INT64_MIN, 1.0 / 3, std::nan(""), nullptr, true,
                      std::string_view()));
  ASSERT_OK_AND_ASSIGN(const bool row, echo.Step());
  ASSERT_TRUE(row);
  EXPECT_EQ(echo.Text(0), text);
  EXPECT_EQ(echo.Text(1), text);
  EXPECT_EQ(echo.Int(2), INT64_MIN);
  EXPECT_EQ(echo.Double(3), 1.0 / 3);
  EXPECT_TRUE(std::isnan(echo.Double(4)));
  EXPECT_TRUE(echo.IsNull(5));
  EXPECT_EQ(echo.Int(6), 1);
  EXPECT_FALSE(echo.IsNull(7));
  EXPECT_EQ(echo.Text(7), "");
}

TEST_F(SqliteTest, OtherFilesAreRefusedUntouched) {
  WriteFile(path_, std::string(5000, 'x'));
  EXPECT_THAT(Open(), StatusIs(StatusCode::kFailedPrecondition,
                               HasSubstr("x.db is not a Kiln database (file is not a database)")));
  EXPECT_EQ(ReadFile(path_), std::string(5000, 'x'));

  std::filesystem::remove(path_);
  {
    ASSERT_OK(Database::Open(path_, 0x77, {}));
  }
  const std::string before = ReadFile(path_);
  EXPECT_THAT(Open(),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("not a Kiln database (application id 0x77, expected 0x1234)")));
  EXPECT_EQ(ReadFile(path_), before);
}

TEST_F(SqliteTest, ADatabaseOfAnotherProgramWithoutAnIdIsRefused) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle, "CREATE TABLE t (x)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(handle);
  EXPECT_THAT(Open(), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("not a Kiln database")));
}

TEST_F(SqliteTest, PathsThatCannotBeOpenedAreNamed) {
  EXPECT_THAT(
      Database::Open(folder_.File("none/x.db"), kId, {}),
      StatusIs(StatusCode::kNotFound, AllOf(HasSubstr("cannot open"), HasSubstr("none/x.db"),
                                            HasSubstr("No such file or directory"))));
  EXPECT_THAT(Open(OpenOptions::Mode::kReadWrite),
              StatusIs(StatusCode::kNotFound, HasSubstr(path_)));
  EXPECT_THAT(Open(OpenOptions::Mode::kReadOnly),
              StatusIs(StatusCode::kNotFound, HasSubstr(path_)));
  EXPECT_THAT(Database::Open("", kId, {}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("path of the database is empty")));
  EXPECT_THAT(Database::Open(folder_.File(""), kId, {}),
              StatusIs(StatusCode::kNotFound, HasSubstr("cannot open")));
}

TEST_F(SqliteTest, AnEmptyFileBecomesADatabaseOnlyWhereOneMayBeMade) {
  WriteFile(path_, "");
  EXPECT_THAT(Open(OpenOptions::Mode::kReadWrite),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("the file is empty")));
  EXPECT_OK(Open());
  EXPECT_OK(Open(OpenOptions::Mode::kReadWrite));
}

TEST_F(SqliteTest, ReadOnlyConnectionsRefuseWrites) {
  ASSERT_OK_AND_ASSIGN(auto writer, Open());
  ASSERT_OK(writer->Execute("CREATE TABLE t (x)"));
  ASSERT_OK_AND_ASSIGN(auto reader, Open(OpenOptions::Mode::kReadOnly));
  EXPECT_THAT(reader->Execute("INSERT INTO t VALUES (1)"),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("x.db is read-only")));
  ASSERT_OK(writer->Execute("INSERT INTO t VALUES (1)"));
  ASSERT_OK_AND_ASSIGN(const int64_t rows, reader->QueryInt("SELECT count(*) FROM t"));
  EXPECT_EQ(rows, 1);
}

TEST_F(SqliteTest, ALockedDatabaseSaysSo) {
  ASSERT_OK_AND_ASSIGN(auto first, Open());
  ASSERT_OK_AND_ASSIGN(auto second, Open());
  {
    ASSERT_OK_AND_ASSIGN(Transaction transaction, Transaction::Begin(*first));
    EXPECT_THAT(Transaction::Begin(*second).status(),
                StatusIs(StatusCode::kUnavailable,
                         HasSubstr("x.db is locked by another process (waited 50 ms)")));
  }
  EXPECT_OK(Transaction::Begin(*second).status());
}

TEST_F(SqliteTest, ATransactionIsRolledBackUnlessCommitted) {
  ASSERT_OK_AND_ASSIGN(auto database, Open());
  ASSERT_OK(database->Execute("CREATE TABLE t (x INTEGER PRIMARY KEY)"));
  {
    ASSERT_OK_AND_ASSIGN(Transaction transaction, Transaction::Begin(*database));
    ASSERT_OK(database->Execute("INSERT INTO t VALUES (1)"));
  }
  {
    ASSERT_OK_AND_ASSIGN(Transaction transaction, Transaction::Begin(*database));
    ASSERT_OK(database->Execute("INSERT INTO t VALUES (2)"));
    EXPECT_THAT(database->Execute("INSERT INTO t VALUES (2)"),
                StatusIs(StatusCode::kAlreadyExists, HasSubstr("UNIQUE")));
    ASSERT_OK(transaction.Commit());
  }
  ASSERT_OK_AND_ASSIGN(const int64_t sum, database->QueryInt("SELECT sum(x) FROM t"));
  EXPECT_EQ(sum, 2);
}

TEST_F(SqliteTest, AFullDiskSaysSoAndKeepsWhatWasThere) {
  ASSERT_OK_AND_ASSIGN(auto database, Open());
  ASSERT_OK(database->Execute("CREATE TABLE t (x); INSERT INTO t VALUES (1)"));
  ASSERT_OK(database->QueryInt("PRAGMA max_page_count=4"));
  {
    ASSERT_OK_AND_ASSIGN(Transaction transaction, Transaction::Begin(*database));
    EXPECT_THAT(
        database->Execute("INSERT INTO t VALUES (zeroblob(100000))"),
        StatusIs(StatusCode::kResourceExhausted,
                 AllOf(HasSubstr("no space left for"), EndsWith("free some and try again"))));
  }
  ASSERT_OK_AND_ASSIGN(const int64_t rows, database->QueryInt("SELECT count(*) FROM t"));
  EXPECT_EQ(rows, 1);
  ASSERT_OK(database->QueryInt("PRAGMA max_page_count=100000"));
  EXPECT_OK(database->Execute("INSERT INTO t VALUES (zeroblob(100000))"));
}

// While it lives, no file may become longer than the limit.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

// The log is taken into the database only when it is long. A log that fills the disk before would
// keep the disk full for ever.
TEST_F(SqliteTest, ALogThatFillsTheDiskIsTakenIn) {
  ASSERT_OK_AND_ASSIGN(auto database, Open());
  ASSERT_OK(database->Execute("CREATE TABLE t (x)"));
  const auto insert = [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database));
    KILN_RETURN_IF_ERROR(database->Execute("INSERT INTO t VALUES (zeroblob(3000))"));
    return transaction.Commit();
  };
  int rows = 0, failures = 0;
  {
    const FileSizeLimit limit(400'000);
    for (int i = 0; i < 120; ++i) {
      const Status status = insert();
      (status.ok() ? rows : failures) += 1;
      if (!status.ok()) {
        EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
      }
    }
    EXPECT_GE(failures, 1);
    EXPECT_GE(rows, 80) << "the database itself has room for these";
  }
  EXPECT_OK(insert());
  ASSERT_OK_AND_ASSIGN(const int64_t kept, database->QueryInt("SELECT count(*) FROM t"));
  EXPECT_EQ(kept, rows + 1);
}

TEST_F(SqliteTest, AFileThatIsDeletedOrReplacedIsNoticed) {
  ASSERT_OK_AND_ASSIGN(auto database, Open());
  ASSERT_OK(database->Execute("CREATE TABLE t (x)"));
  const auto begin = [&] { return Transaction::Begin(*database).status(); };
  const auto gone = StatusIs(StatusCode::kUnavailable, AllOf(HasSubstr("was deleted or replaced"),
                                                             HasSubstr("put the file back")));
  EXPECT_OK(begin());
  const std::string elsewhere = folder_.File("elsewhere");
  std::filesystem::rename(path_, elsewhere);
  EXPECT_THAT(begin(), gone);
  // Reads still work, so the data can be saved.
  EXPECT_OK(database->QueryInt("SELECT count(*) FROM t"));
  WriteFile(path_, "another file");
  EXPECT_THAT(begin(), gone);
  std::filesystem::rename(elsewhere, path_);
  EXPECT_OK(begin());
  ASSERT_OK_AND_ASSIGN(Transaction transaction, Transaction::Begin(*database));
  ASSERT_OK(database->Execute("INSERT INTO t VALUES (1)"));
  std::filesystem::remove(path_);
  EXPECT_THAT(transaction.Commit(), gone);
}

TEST_F(SqliteTest, ADamagedFileIsDataLoss) {
  {
    ASSERT_OK_AND_ASSIGN(auto database, Open());
    ASSERT_OK(database->Execute("CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(100000))"));
  }
  std::string bytes = ReadFile(path_);
  std::fill(bytes.begin() + 4096, bytes.end(), '\xee');
  WriteFile(path_, bytes);
  ASSERT_OK_AND_ASSIGN(auto database, Open());
  EXPECT_THAT(database->QueryInt("SELECT count(*) FROM t"),
              StatusIs(StatusCode::kDataLoss, HasSubstr("x.db is damaged")));
}

TEST_F(SqliteTest, WrongSqlIsInternal) {
  ASSERT_OK_AND_ASSIGN(auto database, Open());
  EXPECT_THAT(database->Prepare("SELEC 1").status(),
              StatusIs(StatusCode::kInternal, HasSubstr("syntax error")));
}

constexpr const char* kSteps[] = {"CREATE TABLE t (x); INSERT INTO t VALUES (1)",
                                  "ALTER TABLE t ADD COLUMN y; UPDATE t SET y = x + 1",
                                  "UPDATE t SET y = y * 10"};

TEST_F(SqliteTest, MigratesFromEveryVersion) {
  for (size_t from = 0; from <= 3; ++from) {
    TestFolder folder;
    ASSERT_OK_AND_ASSIGN(auto database, Database::Open(folder.File("m.db"), kId, {}));
    ASSERT_OK(Migrate(*database, std::span(kSteps).first(from), false));
    ASSERT_OK(Migrate(*database, kSteps, false));
    ASSERT_OK(Migrate(*database, kSteps, true));
    ASSERT_OK_AND_ASSIGN(const int64_t y, database->QueryInt("SELECT y FROM t"));
    EXPECT_EQ(y, 20) << from;
    ASSERT_OK_AND_ASSIGN(const int64_t version, database->QueryInt("PRAGMA user_version"));
    EXPECT_EQ(version, 3);
  }
}

TEST_F(SqliteTest, NewerAndOlderSchemasAreRefusedWithBothNumbers) {
  ASSERT_OK_AND_ASSIGN(auto database, Open());
  ASSERT_OK(Migrate(*database, std::span(kSteps).first(2), false));
  EXPECT_THAT(Migrate(*database, std::span(kSteps).first(1), false),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("x.db was made by a newer Kiln (schema 2, this one knows 1)")));
  EXPECT_THAT(Migrate(*database, kSteps, true),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("made by an older Kiln (schema 2, this one needs 3)")));
}

TEST_F(SqliteTest, AFailedMigrationChangesNothing) {
  ASSERT_OK_AND_ASSIGN(auto database, Open());
  ASSERT_OK(Migrate(*database, std::span(kSteps).first(1), false));
  const char* const broken[] = {kSteps[0], kSteps[1], "UPDATE none SET x = 1"};
  EXPECT_THAT(Migrate(*database, broken, false),
              StatusIs(StatusCode::kInternal, HasSubstr("migrating to schema 3")));
  ASSERT_OK_AND_ASSIGN(const int64_t version, database->QueryInt("PRAGMA user_version"));
  EXPECT_EQ(version, 1);
  ASSERT_OK(Migrate(*database, kSteps, false));
}

TEST_F(SqliteTest, ManyMayMakeTheSameFileAtOnce) {
  for (int round = 0; round < 5; ++round) {
    const std::string path = folder_.File(fmt::format("{}.db", round));
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        auto database = Database::Open(path, kId, {});
        ASSERT_OK(database);
        EXPECT_OK(Migrate(**database, kSteps, false));
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_OK_AND_ASSIGN(auto database, Database::Open(path, kId, {}));
    ASSERT_OK_AND_ASSIGN(const int64_t rows, database->QueryInt("SELECT count(*) FROM t"));
    EXPECT_EQ(rows, 1);
  }
}

}  // namespace
}  // namespace kiln::store::sqlite
