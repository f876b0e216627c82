// Tests a schedule of kiln show --as schedule that is changed and given to kiln trial --schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file/file.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;
using Json = nlohmann::json;

class ScheduleTrialTest : public KilnTest {
 protected:
  RunResult Run(Words words, std::string_view input = {}) const {
    return RunKiln(WithDb(std::move(words)), input);
  }
};

constexpr char kRows[] =
    "C_i, C_j, C_k = s[T_matmul_NN].axes\n"
    "C_i_0, C_i_1 = s[T_matmul_NN].split(C_i, factor=8)\n"
    "s[T_matmul_NN].parallel(C_i_0)\n";

// The option for sums comes from the user's target and not from the device.
TEST_F(ScheduleTrialTest, KeepsTheMathOfItsTarget) {
  for (const std::string math : {"", " -math=tf32"}) {
    const Json kept =
        JsonLines(Kiln({"trial", "matmul", "--args", "32,16,24", "--target", "null" + math,
                        "--schedule", File("mine.sched", kRows), "--json"}))
            .at(0);
    EXPECT_EQ(kept["target"].get<std::string>().find("-math=tf32") != std::string::npos,
              !math.empty())
        << kept["target"];
  }
}

TEST_F(ScheduleTrialTest, IsMeasuredCheckedAndKept) {
  const Words matmul = {"trial",    "matmul", "--args",     "32,16,24",
                        "--target", "llvm",   "--schedule", File("mine.sched", kRows)};
  EXPECT_THAT(Kiln(matmul), AllOf(HasSubstr("now       "), HasSubstr("checked   "),
                                  HasSubstr("kept as   trial schedules/0, record 1\n")));
  // Takes the record's schedule as Kiln prints it, and changes a factor.
  std::string text = Kiln({"show", "schedules/0", "--as", "schedule"});
  const std::string split =
      "T_matmul_NN_i_0, T_matmul_NN_i_1 = s[T_matmul_NN].split(T_matmul_NN_i, factor=8)\n";
  ASSERT_THAT(text, HasSubstr(split));
  text.replace(text.find("factor=8"), 8, "factor=4");
  const Json kept =
      JsonLines(Kiln({"trial", "schedules/0", "--schedule", "-", "--json"}, text)).at(0);
  EXPECT_EQ(kept["trial"], 1);
  EXPECT_THAT(kept["steps"].get<std::string>(), HasSubstr("[\"SP\", 2, 0, 32, [4], 1]"));
  const auto records = JsonLines(Kiln({"records", "list", "--job", "schedules", "--json"}));
  ASSERT_THAT(records, SizeIs(2));
  for (const Json& record : records) {
    EXPECT_THAT(record["result"]["costs_s"], SizeIs(1));
    EXPECT_EQ(record["workload_id"], records[0]["workload_id"]);
    EXPECT_NE(record["result"]["device"], "");
  }
  EXPECT_THAT(Kiln({"best", "matmul", "--args", "32,16,24"}), HasSubstr("schedules/"));
  EXPECT_THAT(Kiln({"show", "1", "--as", "tvm"}), HasSubstr("te.compute((32, 16), lambda i, j"));
  EXPECT_THAT(Kiln({"trial", "schedules/1"}), HasSubstr("checked   "));
}

TEST_F(ScheduleTrialTest, FailedTrialsAreKeptToo) {
  const RunResult result =
      Run({"trial", "matmul", "--args", "32,16,24", "--target", "llvm", "--schedule",
           File("mine.sched",
                "i, j, k = s[T_matmul_NN].axes\ns[T_matmul_NN].bind(i, \"blockIdx.x\")\n")});
  EXPECT_EQ(result.exit.code, 1);
  EXPECT_THAT(
      result.output,
      AllOf(HasSubstr("failed    bad schedule: stage 2 (T_matmul_NN), loop 0 (i): blockIdx.x"),
            HasSubstr("kept as   trial schedules/0")));
  EXPECT_THAT(JsonLines(Kiln({"records", "list", "--errors", "--json"})), SizeIs(1));
}

TEST_F(ScheduleTrialTest, RefusalsNameFileLineAndColumn) {
  const auto error = [&](const std::string& text) {
    const RunResult result =
        Run({"trial", "matmul", "--args", "32,16,24", "--schedule", File("mine.sched", text)});
    EXPECT_EQ(result.exit.code, 1) << result.output;
    return result.error;
  };
  EXPECT_THAT(error(std::string(kRows) + "s[T_matmul_NN].vectorize(C_i)\n"),
              HasSubstr("mine.sched: line 4, column 26: expected a loop of T_matmul_NN, which are "
                        "C_i_0, C_i_1, C_j, C_k, found 'C_i', which was split"));
  EXPECT_THAT(error("a, b, c = s[T_matmul_NN].axes\nd, e = s[T_matmul_NN].split(a, factor=0)\n"),
              HasSubstr("a factor is 0, a blank of a sketch"));
  EXPECT_THAT(RunKiln({"trial", "matmul", "--args", "8,8,8", "--schedule",
                       File("mine.sched", kRows), "--scheduler", "localhost:1"})
                  .error,
              HasSubstr("leave out --scheduler"));
  EXPECT_THAT(Run({"trial", "x/1", "--schedule", File("mine.sched", kRows), "--keep", "x"}).error,
              HasSubstr("--keep"));
  EXPECT_THAT(Run({"trial"}).error, HasSubstr("expected a trial, JOB/N, or a schedule"));
  EXPECT_THAT(Run({"trial", "matmul", "--args", "8,8,8", "--schedule", "nowhere"}).error,
              HasSubstr("nowhere"));
  EXPECT_FALSE(FileExists(db_));
}

}  // namespace
}  // namespace kiln::client
