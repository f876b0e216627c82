#include "client/cli/networks/verify_folder.h"

#include <gmock/gmock.h>

#include <map>

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Verdict = VerifiedFile::Verdict;

RunResult Prints(const std::string& output, int code = 0) {
  RunResult result;
  result.exit.code = code;
  result.output = output;
  return result;
}

RunResult Says(const std::string& error, int code, int signal = 0) {
  RunResult result;
  result.exit.code = code;
  result.exit.signal = signal;
  result.error = error;
  return result;
}

// A program that answers by the first word of its command line.
class Program {
 public:
  StatusOr<RunResult> Run(const std::vector<std::string>& words) {
    calls.push_back(words);
    return answers.at(words[0]);
  }
  VerifiedFile Verify(const std::string& path, const VerifyFolderOptions& options = {}) {
    return VerifyFile(path, options,
                      [this](const auto& words, absl::Duration) { return Run(words); });
  }

  std::map<std::string, StatusOr<RunResult>> answers;
  std::vector<std::vector<std::string>> calls;
};

constexpr char kRight[] = R"({"output":"y","max_error":1e-7,"right":true,"problem":""})";
constexpr char kBench[] =
    R"({"mean_s":1,"kernels":[{"kernel":"a","seconds":3e-3,"expected_s":2e-3},)"
    R"({"kernel":"b","seconds":1e-3,"expected_s":0}]})";

TEST(VerifyFolderTest, ANetworkIsCheckedAndTimed) {
  Program program;
  program.answers = {{"verify", Prints(kRight)}, {"bench", Prints(kBench)}};
  const VerifyFolderOptions options{.verify_words = {"--seed", "3"}, .bench_words = {"--gpu", "1"}};
  const VerifiedFile slow = program.Verify("x.kiln", options);
  EXPECT_THAT(program.calls,
              ElementsAre(ElementsAre("verify", "x.kiln", "--seed", "3", "--json"),
                          ElementsAre("bench", "x.kiln", "--profile", "--gpu", "1", "--json")));
  EXPECT_EQ(slow.verdict, Verdict::kSlower);
  EXPECT_DOUBLE_EQ(slow.Ratio(), 1.5);
  EXPECT_THAT(slow.problem, HasSubstr("1.50 times the file's time, at most 1.30"));
  EXPECT_EQ(program.Verify("x.kiln", {.most_slower = 60}).verdict, Verdict::kRight);
  EXPECT_EQ(program.Verify("x.kiln", {.most_slower = 0}).verdict, Verdict::kRight);
}

TEST(VerifyFolderTest, WhatIsWrongAndWhatCannotBeChecked) {
  Program program;
  program.answers = {{"verify", Prints(R"({"kernel":"k","right":false,"problem":"off by 3"})"
                                       "\n"
                                       R"({"output":"y","right":false,"problem":"off"})",
                                       1)}};
  EXPECT_EQ(program.Verify("x.kiln").verdict, Verdict::kWrong);
  EXPECT_EQ(program.Verify("x.kiln").problem, "off by 3 (and 1 more)");
  program.answers.at("verify") = Says("kiln: x.kiln: its checksum is wrong\n", 2);
  EXPECT_EQ(program.Verify("x.kiln").verdict, Verdict::kNotChecked);
  EXPECT_EQ(program.Verify("x.kiln").problem, "x.kiln: its checksum is wrong");
  program.answers.at("verify") = Says("", 0, 11);
  EXPECT_EQ(program.Verify("x.kiln").verdict, Verdict::kWrong);
  EXPECT_THAT(program.Verify("x.kiln").problem, HasSubstr("killed by signal 11"));
  program.answers.at("verify") = DeadlineExceeded("it ran for ten minutes");
  EXPECT_EQ(program.Verify("x.kiln").problem, "it ran for ten minutes");
  program.answers = {{"verify", Prints(kRight)}, {"bench", Says("kiln: no GPU\n", 1)}};
  EXPECT_EQ(program.Verify("x.kiln").verdict, Verdict::kNotChecked);
  EXPECT_EQ(program.Verify("x.kiln").problem, "no GPU");
}

TEST(VerifyFolderTest, ALogIsMeasured) {
  Program program;
  program.answers = {
      {"records", Prints(R"({"line":1,"logged_cost_s":1e-3,"cost_s":1.1e-3,"ok":true,"check":""})"
                         "\n"
                         R"({"line":2,"logged_cost_s":null,"cost_s":9e-3,"ok":true,"check":""})")}};
  const VerifiedFile right = program.Verify("log.json");
  EXPECT_THAT(program.calls, ElementsAre(ElementsAre("records", "measure", "log.json", "--json")));
  EXPECT_EQ(right.verdict, Verdict::kRight);
  EXPECT_NEAR(right.Ratio(), 1.1, 1e-9);
  program.answers.at("records") =
      Prints(R"({"line":1,"cost_s":null,"ok":false,"check":"wrong answer"})", 1);
  EXPECT_EQ(program.Verify("log.json").problem, "wrong answer");
  // A record of which nobody knows what it computes is not wrong.
  const std::string unknown =
      R"({"line":2,"cost_s":null,"ok":false,"checked":false,"check":"no DAG is known for this key"})";
  program.answers.at("records") =
      Prints(R"({"line":1,"cost_s":1e-3,"ok":true,"checked":true,"check":""})"
             "\n" +
                 unknown,
             1);
  const VerifiedFile unchecked = program.Verify("log.json");
  EXPECT_EQ(unchecked.verdict, Verdict::kNotChecked);
  EXPECT_EQ(unchecked.problem, "1 of 2 records not checked: no DAG is known for this key");
  EXPECT_EQ(ExitStatusOf({unchecked}), 2);
  program.answers.at("records") =
      Prints(R"({"line":1,"cost_s":null,"ok":false,"checked":true,"check":"wrong answer"})"
             "\n" +
                 unknown,
             1);
  EXPECT_EQ(program.Verify("log.json").verdict, Verdict::kWrong);
  EXPECT_EQ(program.Verify("log.json").problem, "wrong answer");
  program.answers.at("records") = Says("kiln: log.json has no records\n", 1);
  EXPECT_EQ(program.Verify("log.json").verdict, Verdict::kNotChecked);
}

TEST(VerifyFolderTest, TheFilesOfAFolder) {
  const TempDir folder = *TempDir::Make("kiln-verify");
  EXPECT_THAT(FilesToVerify(folder.path()),
              StatusIs(StatusCode::kNotFound, HasSubstr("expected compiled files (*.kiln)")));
  EXPECT_THAT(FilesToVerify(folder.Join("none")),
              StatusIs(StatusCode::kNotFound, HasSubstr("cannot be read")));
  ASSERT_OK(MakeDirs(folder.Join("b")));
  for (const char* name : {"z.kiln", "b/a.json", "b/readme.md", "a.log", "kiln"}) {
    ASSERT_OK(WriteFile(folder.Join(name), ""));
  }
  EXPECT_THAT(*FilesToVerify(folder.path()),
              ElementsAre(folder.Join("a.log"), folder.Join("b/a.json"), folder.Join("z.kiln")));
}

TEST(VerifyFolderTest, TheExitStatusAndTheTable) {
  const VerifiedFile right{
      .path = "a.kiln", .verdict = Verdict::kRight, .here_s = 2e-3, .file_s = 1e-3};
  const VerifiedFile wrong{.path = "b.kiln", .verdict = Verdict::kWrong, .problem = "off by 3"};
  const VerifiedFile unknown{.path = "c.kiln", .problem = "damaged"};
  EXPECT_EQ(ExitStatusOf({right}), 0);
  EXPECT_EQ(ExitStatusOf({right, wrong}), 1);
  EXPECT_EQ(ExitStatusOf({wrong, unknown, right}), 2);
  EXPECT_THAT(VerifiedTable({right, wrong, unknown}, 0),
              AllOf(HasSubstr("2.00"), HasSubstr("WRONG: off by 3"),
                    HasSubstr("not checked: damaged"), HasSubstr("1 of 3 files right")));
  EXPECT_EQ(VerifiedJson(right),
            R"({"file":"a.kiln","verdict":"right","problem":"","here_s":0.002,"file_s":0.001,)"
            R"("ratio":2.0})");
}

}  // namespace
}  // namespace kiln::client
