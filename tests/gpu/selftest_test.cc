// Tests `kiln selftest`, `kiln conformance` and `kiln records measure` on a GPU if there is one,
// and on the CPU, where the commands themselves are tested without a driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file/file.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using Json = nlohmann::json;

// Runs a command with more time, because these commands take longer than others.
RunResult RunLong(const Words& words) {
  auto result = RunToEnd(KilnOptions(words), {}, absl::Minutes(8));
  EXPECT_OK(result.status());
  return result.ok() ? *std::move(result) : RunResult();
}

std::vector<Json> JsonLines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

// Returns "" if there is a GPU that can be tested.
std::string WhyNoGpu() {
  const RunResult list = RunLong({"runner", "--device", "cuda", "--list"});
  return list.exit.ok() ? "" : list.error;
}

// The slack allows for other tests that run on the machine.
void ExpectAllPass(const std::string& device) {
  const RunResult result = RunLong({"selftest", "--device", device, "--json", "--slack", "10"});
  EXPECT_TRUE(result.exit.ok()) << result.output << result.error;
  const auto lines = JsonLines(result.output);
  ASSERT_GT(lines.size(), 20u) << result.output;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    EXPECT_NE(lines[i]["outcome"], "FAIL") << lines[i];
    std::printf("%s\n", lines[i].dump().c_str());
  }
  EXPECT_EQ(lines.back()["failed"], 0);
}

TEST(SelfTest, Gpu) {
  if (const std::string why = WhyNoGpu(); !why.empty()) GTEST_SKIP() << why;
  ExpectAllPass("cuda");
}

TEST(SelfTest, Cpu) { ExpectAllPass("cpu"); }

TEST(SelfTest, WithoutAGpuItSkipsWithOneSentence) {
  if (WhyNoGpu().empty()) GTEST_SKIP() << "there is a GPU";
  const RunResult result = RunLong({"selftest"});
  EXPECT_TRUE(result.exit.ok()) << result.error;
  EXPECT_THAT(result.output, AllOf(HasSubstr("skip  device cuda"), HasSubstr("libcuda.so.1"),
                                   HasSubstr("0 passed, 0 failed, 1 skipped")));
}

// Runs a job on the CPU, exports its log, and measures the log again.
TEST(MeasureLog, RecordsOfAJobAreRightAgain) {
  const TempDir folder = *TempDir::Make("measure-log-test");
  const std::string db = folder.Join("kiln.db"), log = folder.Join("log.json");
  KilnPrints({"tune", "matmul", "--args", "48,40,56", "--trials", "6", "--target", "llvm", "--db",
              db, "--min-repeat-ms", "2"});
  KilnPrints({"records", "export", "--db", db, "-o", log});
  const RunResult result = RunLong({"records", "measure", log, "--db", db, "--min-repeat-ms", "2"});
  EXPECT_TRUE(result.exit.ok()) << result.output << result.error;
  EXPECT_THAT(result.output, AllOf(HasSubstr("matmul 48,40,56"), HasSubstr("6 of 6 right")));
  const RunResult unknown = RunLong({"records", "measure", log, "--db", folder.Join("none.db")});
  EXPECT_EQ(unknown.exit.code, 1);
  EXPECT_THAT(unknown.output, AllOf(HasSubstr("no DAG is known"), HasSubstr("0 of 6 right")));
}

TEST(Conformance, CountsEveryCandidate) {
  const TempDir folder = *TempDir::Make("conformance-test");
  const RunResult result =
      RunLong({"conformance", "--target", "llvm", "--only", "127,255,63", "--trials", "8",
               "--min-repeat-ms", "1", "--db", folder.Join("kiln.db"), "--json"});
  EXPECT_TRUE(result.exit.ok()) << result.output << result.error;
  const auto lines = JsonLines(result.output);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["workload"], "matmul 127,255,63 + relu");
  EXPECT_EQ(lines[0]["candidates"], 8);
  EXPECT_EQ(lines[0]["right"], 8);
  EXPECT_GT(lines[0]["best_cost_s"], 0);
}

TEST(Conformance, FailuresHaveACommandThatShowsThemAgain) {
  const TempDir folder = *TempDir::Make("conformance-test");
  const RunResult result = RunLong({"conformance", "--target", "llvm", "--only", "127,255,63",
                                    "--trials", "6", "--min-repeat-ms", "1", "--db",
                                    folder.Join("kiln.db"), "--fault", "3:wrong-answer"});
  EXPECT_EQ(result.exit.code, 1) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("wrong answer: "), HasSubstr(" trial "),
                                   HasSubstr("/3 --db " + folder.Join("kiln.db"))));
}

TEST(JobTiming, SaysWhereTheTimeWent) {
  const TempDir folder = *TempDir::Make("timing-test");
  const std::string db = folder.Join("kiln.db");
  const auto events =
      JsonLines(KilnPrints({"tune", "matmul", "--args", "64,64,64", "--trials", "6", "--target",
                            "llvm", "--db", db, "--min-repeat-ms", "2", "--json"}));
  const std::string job = events.front()["job"];
  const std::string text = KilnPrints({"jobs", job, "--timing", "--db", db});
  for (const char* part : {"instantiate", "compile", "load", "check", "timed runs", "overhead",
                           "builds of one process"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  const Json json = Json::parse(KilnPrints({"jobs", job, "--timing", "--db", db, "--json"}));
  EXPECT_EQ(json["trials"], 6);
  EXPECT_GT(json["parts"]["timed runs of the program"]["p50_s"], 0);
}

}  // namespace
}  // namespace kiln::client
