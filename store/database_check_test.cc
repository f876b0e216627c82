#include "store/database_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash/digest.h"
#include "base/status_testing.h"
#include "store/folder_testing.h"
#include "store/record_testing.h"
#include "store/schema.h"
#include "store/sqlite_store.h"

namespace kiln::store {
namespace {

using sqlite::Database;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Texts that begin with "bad" do not parse.
Status Check(std::string_view text) {
  return text.starts_with("bad") ? InvalidArgument("found '{}'", text) : OkStatus();
}

const TextChecks kChecks = {.identity = [](std::string_view dag) -> StatusOr<std::string> {
                              KILN_RETURN_IF_ERROR(Check(dag));
                              return Sha256Hex(dag);
                            },
                            .steps = Check,
                            .job_spec = Check};

MATCHER_P3(Is, place, fault, count, "") {
  *result_listener << arg.place << ": " << arg.fault << " (" << arg.example << ")";
  return arg.place == place && arg.fault.find(fault) != std::string::npos && arg.count == count &&
         !arg.example.empty() && !arg.advice.empty();
}

class DatabaseCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(const auto store, OpenSqliteStore(db_));
    JobRow job;
    job.id = "j";
    ASSERT_OK(store->AddJob(job));
    for (uint32_t trial = 0; trial < 4; ++trial) {
      Record record = TestRecord("j", trial);
      record.workload_id = Sha256Hex(record.dag);
      ASSERT_OK(store->AddRecord(record));
    }
    ASSERT_OK(store->AddRecord(FailedRecord("j", 4, 5)));
  }

  std::vector<Finding> FindingsAfter(const std::string& sql) {
    {
      const auto database = Database::Open(db_, kApplicationId, {});
      EXPECT_OK(database.status());
      EXPECT_OK(
          (*database)->Execute("PRAGMA foreign_keys=OFF; PRAGMA ignore_check_constraints=ON"));
      EXPECT_OK((*database)->Execute(sql.c_str()));
    }
    const auto report = CheckDatabaseFile(db_, kChecks);
    EXPECT_OK(report.status());
    return report.ok() ? report->findings : std::vector<Finding>();
  }

  const TestFolder folder_;
  const std::string db_ = folder_.File("kiln.db");
};

TEST_F(DatabaseCheckTest, NothingIsWrongWithWhatKilnWrote) {
  // The fixture's failed record has an identity of its own.
  EXPECT_THAT(FindingsAfter("UPDATE records SET workload_id = '' WHERE trial = 4"), IsEmpty());
  ASSERT_OK_AND_ASSIGN(const DatabaseReport report, CheckDatabaseFile(db_, kChecks));
  EXPECT_EQ(report.size.records, 5);
  EXPECT_EQ(report.size.jobs, 1);
  EXPECT_EQ(report.size.schema, report.known_schema);
}

TEST_F(DatabaseCheckTest, EachKindOfFaultIsFoundAndCounted) {
  EXPECT_THAT(FindingsAfter("UPDATE records SET steps = 'bad' WHERE trial < 2"),
              ElementsAre(Is("records", "steps do not parse", 2),
                          Is("records", "identity is not that", 1)));
  EXPECT_THAT(FindingsAfter("UPDATE records SET workload_id = '', steps = '[]', costs_s = '[x' "
                            "WHERE trial = 0"),
              testing::Contains(Is("records", "row does not parse", 1)));
  EXPECT_THAT(FindingsAfter("DELETE FROM records; UPDATE jobs SET state = 'odd', spec = x'626164'"),
              ElementsAre(Is("jobs", "state is unknown", 1),
                          Is("jobs", "specification does not parse", 1)));
  EXPECT_THAT(FindingsAfter("UPDATE jobs SET state = 'failed', spec = x''; "
                            "UPDATE dags SET text = 'bad'"),
              ElementsAre(Is("computations", "digest", 1), Is("computations", "not parse", 1)));
  EXPECT_THAT(FindingsAfter("DROP INDEX best_of_task; "
                            "INSERT INTO tasks (job_id, task_index, workload_key, target, "
                            "description) VALUES ('gone', 0, 'k', 'llvm', '')"),
              testing::IsSupersetOf({Is("references", "missing", 1), Is("schema", "missing", 1)}));
}

TEST_F(DatabaseCheckTest, ACostThatDoesNotFitIsFound) {
  EXPECT_THAT(FindingsAfter("UPDATE records SET workload_id = ''; "
                            "UPDATE records SET mean_cost_s = NULL WHERE trial = 1"),
              ElementsAre(Is("records", "cost does not fit", 1)));
  EXPECT_THAT(FindingsAfter("DELETE FROM records WHERE trial = 1; "
                            "UPDATE records SET costs_s = '[-1]' WHERE trial = 2"),
              ElementsAre(Is("records", "costs are impossible", 1)));
}

TEST_F(DatabaseCheckTest, DamagedPagesAreFound) {
  std::string bytes = ReadFile(db_);
  const size_t page = bytes.find("[[\"SP\"") / 4096 * 4096;
  bytes.replace(page, 2000, std::string(2000, '\x7f'));
  WriteFile(db_, bytes);
  ASSERT_OK_AND_ASSIGN(const DatabaseReport report, CheckDatabaseFile(db_, kChecks));
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings.front().place, "file");
}

TEST_F(DatabaseCheckTest, AnOlderSchemaIsReadInACopyAndStaysAsItIs) {
  const std::string old = folder_.File("old.db");
  {
    ASSERT_OK_AND_ASSIGN(const auto database, Database::Open(old, kApplicationId, {}));
    ASSERT_OK(sqlite::Migrate(*database, Migrations().first(9), false));
    ASSERT_OK(database->Execute(
        "INSERT INTO jobs (id, name, user, priority, state, message, spec, created_ms, started_ms, "
        "finished_ms) VALUES ('j', '', '', 0, 'queued', '', x'626164', 0, 0, 0)"));
  }
  ASSERT_OK_AND_ASSIGN(const DatabaseReport report, CheckDatabaseFile(old, kChecks));
  EXPECT_EQ(report.size.schema, 9);
  EXPECT_THAT(report.findings, ElementsAre(Is("jobs", "specification does not parse", 1)));
  ASSERT_OK_AND_ASSIGN(
      const auto database,
      Database::Open(old, kApplicationId, {.mode = sqlite::OpenOptions::Mode::kReadOnly}));
  ASSERT_OK_AND_ASSIGN(const int64_t version, database->QueryInt("PRAGMA user_version"));
  EXPECT_EQ(version, 9);
}

TEST_F(DatabaseCheckTest, ANewerSchemaIsRefusedWithBothVersions) {
  const int known = static_cast<int>(Migrations().size());
  {
    ASSERT_OK_AND_ASSIGN(const auto database, Database::Open(db_, kApplicationId, {}));
    ASSERT_OK(database->Execute(fmt::format("PRAGMA user_version={}", known + 3).c_str()));
  }
  EXPECT_THAT(CheckDatabaseFile(db_, kChecks),
              StatusIs(StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(fmt::format("schema {}", known + 3)),
                             HasSubstr(fmt::format("knows {}", known)))));
}

}  // namespace
}  // namespace kiln::store
