// kiln db, by the real binary. Pruning is tested beside other commands of records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/server/daemon_testing.h"
#include "client/cli/kiln_testing.h"
#include "store/sqlite_store.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class DbTest : public KilnTest {
 protected:
  void Tune() const {
    Kiln({"tune", "matmul", "--args", "32,32,32", "--target", "null", "--trials", "6", "--policy",
          "sketch.random", "--json"});
  }
  const std::string copy_ = folder_.Join("copy.db");
};

TEST_F(DbTest, ABackupIsMadeBesideASchedulerAndPutBack) {
  Tune();
  DaemonProcess scheduler(
      kKiln, {"scheduler", "--log-level", "error", "--tracker", "127.0.0.1:9", "--db", db_});
  ASSERT_OK(scheduler.Start());
  EXPECT_THAT(Kiln({"db", "backup", copy_}), AllOf(HasSubstr("holds 6 records and 1 job"),
                                                   HasSubstr("KiB"), HasSubstr("checked")));
  EXPECT_THAT(Error({"db", "backup", copy_}), HasSubstr("say --replace"));
  EXPECT_EQ(JsonLines(Kiln({"db", "backup", copy_, "--replace", "--json"})).at(0)["records"], 6);
  EXPECT_THAT(Error({"db", "restore", copy_}), HasSubstr("in use by the scheduler"));
  EXPECT_THAT(Kiln({"db", "check"}), HasSubstr("nothing is wrong"));
  ASSERT_OK(scheduler.Stop().status());
  Tune();
  EXPECT_THAT(Kiln({"db", "check", db_}), HasSubstr("2 jobs"));
  EXPECT_THAT(Kiln({"db", "restore", copy_}),
              AllOf(HasSubstr("holds 6 records and 1 job"), HasSubstr("is kept as " + db_)));
  EXPECT_THAT(Kiln({"db", "check"}), HasSubstr("1 job "));
}

TEST_F(DbTest, ACheckFindsFaultsAndSaysWhatToDo) {
  Tune();
  ASSERT_OK(WriteFile(copy_, "no database"));
  EXPECT_THAT(Refused({"db", "check", copy_}), HasSubstr("is not a Kiln database"));
  EXPECT_THAT(Error({"db", "restore", copy_}), HasSubstr("is not a Kiln database"));
  EXPECT_THAT(Refused({"db", "check", folder_.Join("none.db")}), HasSubstr("cannot open"));
  // Steps of one record are spoiled where they stand in the file.
  ASSERT_OK(RemoveFile(copy_));
  Kiln({"db", "backup", copy_});
  ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(copy_));
  const size_t at = bytes.find("[[\"SP\",");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 6, "[[\"XP\"");
  ASSERT_OK(WriteFile(copy_, bytes));
  const RunResult found = RunKiln({"db", "check", copy_});
  EXPECT_EQ(found.exit.code, 1);
  EXPECT_THAT(found.output, AllOf(HasSubstr("steps do not parse"), HasSubstr("records delete")));
  const RunResult json = RunKiln({"db", "check", copy_, "--json"});
  EXPECT_EQ(JsonLines(json.output).at(0)["place"], "records");
  EXPECT_THAT(Error({"db", "restore", copy_}), HasSubstr("was not restored"));
  EXPECT_THAT(Kiln({"db", "check"}), HasSubstr("nothing is wrong")) << "the database stays";
}

TEST_F(DbTest, PruningSaysFirstWhatWouldGo) {
  Tune();
  EXPECT_THAT(Kiln({"db", "prune", "--keep-best", "2", "--dry-run"}),
              AllOf(HasSubstr("To delete"), HasSubstr("would be deleted")));
  EXPECT_THAT(Kiln({"db", "check"}), HasSubstr("6 records"));
  EXPECT_THAT(Kiln({"db", "prune", "--older-than", "30", "--yes"}), HasSubstr("0 records deleted"));
}

TEST_F(DbTest, OldEntriesOfTheAuditGo) {
  Tune();
  {
    ASSERT_OK_AND_ASSIGN(const auto store, store::OpenSqliteStore(db_));
    const int64_t now_ms = absl::ToUnixMillis(absl::Now());
    for (const int64_t days : {400, 31, 29}) {
      ASSERT_OK(store->AddAudit({.at_ms = now_ms - days * 24 * 60 * 60 * 1000,
                                 .user = "ann",
                                 .call = "Scheduler.CancelJob",
                                 .subject = "job j"},
                                /*keep=*/100'000));
    }
  }
  EXPECT_EQ(Kiln({"db", "prune", "--audit-days", "30", "--dry-run"}),
            "2 entries of the audit would be deleted\n");
  EXPECT_EQ(Kiln({"db", "prune", "--audit-days", "30"}), "2 entries of the audit deleted\n");
  EXPECT_EQ(
      JsonLines(Kiln({"db", "prune", "--audit-days", "28", "--json"})).at(0)["deleted_of_audit"],
      1);
  EXPECT_THAT(Kiln({"db", "check"}), HasSubstr("6 records")) << "and nothing else";
}

}  // namespace
}  // namespace kiln::client
