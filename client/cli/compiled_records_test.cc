// `kiln compile` of tuned jobs, their tasks and trials, and records, by the real binary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file/file.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::json;

// Has a job of the four tasks of a network, each tried twice. Nothing is measured again, so no
// record is more than a first reading.
class CompiledRecordsTest : public KilnTest {
 protected:
  CompiledRecordsTest() {
    const auto events =
        JsonLines(KilnPrints({"tune", "network:mlp", "--target", "llvm", "--trials", "8",
                              "--min-repeat-ms", "1", "--finalists", "0", "--idle-ms", "0", "--db",
                              db_, "--log-dir", folder_.Join("logs"), "--json"}));
    job_ = events.front()["job"];
  }
  Words Compile(const Words& what) const {
    Words words = {"compile", "--db", db_, "-o", file_};
    words.insert(words.end(), what.begin(), what.end());
    return words;
  }
  // Expects that the one kernel has this record. A record with packed weights has another
  // computation than the file, whose inputs come from the caller.
  void CompileTo(const Json& record, Words what) const {
    const bool is_packed = record["dag"].get<std::string>().find("packed") != std::string::npos;
    what.emplace_back("--kernels");
    EXPECT_THAT(KilnPrints(Compile(what)),
                AllOf(HasSubstr(is_packed ? "1 kernel with the schedule of another target or task"
                                          : "1 kernel tuned: "),
                      HasSubstr(" " + record["id"].get<std::string>() + " ")));
  }

  // Tries two candidates of a product of matrices, in a database of its own.
  RunResult TuneMatmul(const Words& more) const {
    Words words = {"tune",      "matmul", "--args",          "32,32,32", "--target",    "llvm",
                   "--trials",  "2",      "--min-repeat-ms", "1",        "--finalists", "0",
                   "--idle-ms", "0",      "--no-warm-start", "--db",     other_db_};
    words.insert(words.end(), more.begin(), more.end());
    return RunKiln(words);
  }

  const std::string other_db_ = folder_.Join("other.db");
  const std::string file_ = folder_.Join("one.kiln");
  std::string job_;
};

TEST_F(CompiledRecordsTest, ANetworkOneTaskOneTrialOneRecord) {
  EXPECT_THAT(KilnPrints(Compile({"network:mlp", "--target", "llvm", "--strict"})),
              HasSubstr("4 kernels tuned: "));
  const std::vector<Json> best = JsonLines(KilnPrints({"best", job_, "--db", db_, "--json"}));
  ASSERT_EQ(best.size(), 4u);
  for (size_t task : {0, 3}) {
    const Json& record = best[task];
    CompileTo(record, {job_, "--task", std::to_string(task)});
    CompileTo(record, {job_ + "/" + std::to_string(record["trial"].get<int>())});
    CompileTo(record, {record["id"].get<std::string>()});
    EXPECT_THAT(KilnPrints({"verify", file_, "--kernels"}),
                HasSubstr("0 of 1 output wrong, 0 of 1 kernel"));
  }
}

// A folder with a compiled file, and one with a file that is damaged.
TEST_F(CompiledRecordsTest, AFolderIsVerified) {
  KilnPrints(Compile({"network:mlp", "--target", "llvm", "--strict"}));
  const std::string tasks = KilnPrints({"records", "curve", job_, "--db", db_, "--each-task"});
  EXPECT_THAT(tasks, HasSubstr("softmax"));
  const std::string kept = folder_.Join("kept");
  ASSERT_OK(MakeDirs(kept));
  ASSERT_OK(WriteFile(kept + "/mlp.kiln", *ReadFile(file_)));
  const Words words = {"verify", kept, "--most-slower", "0"};
  EXPECT_THAT(KilnPrints(words), AllOf(HasSubstr("mlp.kiln"), HasSubstr("1 of 1 file right")));
  const std::string bad = folder_.Join("bad");
  ASSERT_OK(MakeDirs(bad));
  ASSERT_OK(WriteFile(bad + "/damaged.kiln", "KILN-NET"));
  const RunResult damaged = RunKiln({"verify", bad});
  EXPECT_EQ(damaged.exit.code, 2);
  EXPECT_THAT(damaged.output, AllOf(HasSubstr("not checked"), HasSubstr("0 of 1 file right")));
  EXPECT_EQ(RunKiln({"verify", bad + "/damaged.kiln"}).exit.code, 2);
  EXPECT_EQ(RunKiln({"verify", folder_.Join("none")}).exit.code, 2);
}

// Which one is faster is chance here; both are measured.
TEST_F(CompiledRecordsTest, AJobIsComparedWithABaseline) {
  const std::string baseline = folder_.Join("baseline.jsonl");
  ASSERT_OK(WriteFile(baseline, TuneMatmul({"--json"}).output));
  const RunResult same = TuneMatmul({"--baseline", baseline});
  EXPECT_THAT(same.exit.code, testing::AnyOf(0, 1)) << same.error;
  EXPECT_THAT(same.output, AllOf(HasSubstr("Baseline"), HasSubstr(" +- "), HasSubstr("1 task: ")));
  const std::vector<Json> lines = JsonLines(TuneMatmul({"--baseline", baseline, "--json"}).output);
  EXPECT_EQ(lines.back()["event"], "baseline");
  const Json task = lines.back()["tasks"][0];
  EXPECT_EQ(task["measured"], true) << task;
  EXPECT_GT(task["ratio"], 0);
  // A compiled network has other computations, and no programs.
  KilnPrints(Compile({"network:mlp", "--target", "llvm", "--strict"}));
  const RunResult other = TuneMatmul({"--baseline", file_});
  EXPECT_EQ(other.exit.code, 0);
  EXPECT_THAT(other.output, HasSubstr("not compared; the baseline does not have it"));
  const RunResult none = TuneMatmul({"--baseline", folder_.Join("none")});
  EXPECT_EQ(none.exit.code, 1);
  EXPECT_EQ(none.output, "");
}

TEST_F(CompiledRecordsTest, WeightsAreAsTheyWereTuned) {
  EXPECT_THAT(KilnPrints(Compile({"network:mlp", "--target", "llvm", "--strict"})),
              HasSubstr("4 kernels tuned: "));
  EXPECT_THAT(KilnPrints({"verify", file_, "--kernels"}),
              HasSubstr("0 of 1 output wrong, 0 of 4 kernels"));
  // Records with packed weights do not count for computations that take weights unpacked. A first
  // reading is not reused for another computation.
  EXPECT_THAT(KilnPrints(Compile({"network:mlp", "--target", "llvm", "--layout-rewrite", "none"})),
              AllOf(HasSubstr("1 kernel tuned: "),
                    HasSubstr("3 kernels not tuned: their schedules are chosen without")));
}

TEST_F(CompiledRecordsTest, WhatIsNotOneTaskIsRefused) {
  const RunResult several = RunKiln(Compile({job_}));
  EXPECT_EQ(several.exit.code, 1);
  EXPECT_THAT(several.error,
              AllOf(HasSubstr("has 4 tasks, choose one of them"), HasSubstr("--task 3  ")));
  EXPECT_THAT(RunKiln(Compile({job_, "--task", "4"})).error,
              HasSubstr("has no task 4: it has 4 tasks, counted from 0"));
  EXPECT_THAT(RunKiln(Compile({job_ + "/99"})).error, HasSubstr("has no trial 99"));
  EXPECT_THAT(RunKiln(Compile({"9999"})).error, HasSubstr("9999"));
  EXPECT_FALSE(FileExists(file_));
}

}  // namespace
}  // namespace kiln::client
