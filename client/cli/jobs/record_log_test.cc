// The log of a running job.
#include "client/cli/jobs/record_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file/file.h"
#include "base/status_testing.h"
#include "store/measure_log.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

v1::Record RecordOf(int trial) {
  v1::Record record;
  record.set_trial(trial);
  record.set_workload_key(R"(["f", 4])");
  record.set_target("llvm");
  record.set_steps("[]");
  record.mutable_result()->set_error(v1::NO_ERROR);
  record.mutable_result()->add_costs_s(1e-3 * (trial + 1));
  return record;
}

TEST(RecordLog, GrowsByALineForEachTrial) {
  const TempDir folder = *TempDir::Make("record-log");
  const std::string path = folder.Join("log.json");
  {
    ASSERT_OK_AND_ASSIGN(RecordLog log, RecordLog::Open(path));
    ASSERT_OK(log.Add(RecordOf(0)));
    EXPECT_EQ(store::ParseMeasureLog(*ReadFile(path)).lines.size(), 1u);
    ASSERT_OK(log.Add(RecordOf(1)));
  }
  // A job that is watched again tells its first trials again.
  ASSERT_OK_AND_ASSIGN(RecordLog log, RecordLog::Open(path));
  for (const int trial : {0, 1, 2}) ASSERT_OK(log.Add(RecordOf(trial)));
  const store::MeasureLog read = store::ParseMeasureLog(*ReadFile(path));
  EXPECT_TRUE(read.errors.empty());
  ASSERT_EQ(read.lines.size(), 3u);
  EXPECT_EQ(read.lines[2].costs_s, std::vector<double>{3e-3});
}

// A killed process leaves a line without an end. The next record has a line of its own.
TEST(RecordLog, ALineWithoutAnEndIsEndedFirst) {
  const TempDir folder = *TempDir::Make("record-log");
  const std::string path = folder.Join("log.json");
  ASSERT_OK(WriteFile(path, "# mine"));
  ASSERT_OK_AND_ASSIGN(RecordLog log, RecordLog::Open(path));
  EXPECT_EQ(*ReadFile(path), "# mine") << "nothing was found yet";
  for (const int trial : {0, 1}) ASSERT_OK(log.Add(RecordOf(trial)));
  EXPECT_THAT(*ReadFile(path), StartsWith("# mine\n{"));
  const store::MeasureLog read = store::ParseMeasureLog(*ReadFile(path));
  EXPECT_TRUE(read.errors.empty());
  EXPECT_EQ(read.lines.size(), 2u);
}

TEST(RecordLog, AFileThatCannotBeWrittenIsRefusedAtOnce) {
  EXPECT_THAT(std::string(Message(RecordLog::Open("/no/such/folder/log.json").status())),
              HasSubstr("cannot write to /no/such/folder/log.json: No such file or directory"));
  const TempDir folder = *TempDir::Make("record-log");
  EXPECT_THAT(std::string(Message(RecordLog::Open(folder.path()).status())),
              HasSubstr("Is a directory"));
}

}  // namespace
}  // namespace kiln::client
