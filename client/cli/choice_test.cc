// kiln choice by the real binary: the schedule that a computation gets if nothing is searched, and
// pinned schedules, in a database and through a scheduler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file/file.h"
#include "base/server/daemon_testing.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Json = nlohmann::json;

class ChoiceTest : public KilnTest {
 protected:
  // Tunes a product. Returns the job's id.
  std::string Tune() const {
    return JsonLines(Kiln({"tune", "matmul", "--args", "32,32,32", "--target", "null", "--trials",
                           "6", "--policy", "sketch.random", "--json"}))[0]["job"];
  }
  static Words Query(const std::string& args, Words more) {
    Words words = {"choice", "query", "matmul", "--args", args, "--target", "null"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Json Choice(const std::string& args, Words more = {}) const {
    more.emplace_back("--json");
    return JsonLines(Kiln(Query(args, more)))[0]["choice"];
  }

  // Returns the schedule without the comments above it.
  static std::string Primitives(std::string text) {
    while (text.starts_with('#')) text.erase(0, text.find('\n') + 1);
    return text;
  }
};

TEST_F(ChoiceTest, SaysWhatAComputationGetsAndWhy) {
  EXPECT_THAT(Error(Query("32,32,32", {})), HasSubstr("no database"));
  const std::string job = Tune();
  const Json best = JsonLines(Kiln({"best", job, "--json"}))[0];
  const std::string trial = fmt::format("{}/{}", job, best["trial"].get<int>());

  EXPECT_EQ(Choice("32,32,32")["source"], "SCHEDULE_RECORD");
  EXPECT_EQ(Choice("32,32,32")["record_id"], best["id"]);
  EXPECT_EQ(Choice("32,32,32")["steps"], best["steps"]);
  EXPECT_THAT(Kiln(Query("32,32,32", {})),
              AllOf(HasSubstr("matmul 32,32,32 for null\n"), HasSubstr("schedule  trial " + trial),
                    HasSubstr("because   no schedule is set for it; of its records"),
                    HasSubstr(" show " + trial)));
  EXPECT_THAT(Kiln({"choice", "query", trial}), HasSubstr("schedule  trial " + trial));
  EXPECT_THAT(Error(Query("32,32,32", {"--as-deployed", "stream"})),
              HasSubstr("has no record for null that was measured as stream, only "));
  EXPECT_THAT(Error({"best", job, "--as-deployed", "stream"}),
              HasSubstr("has no successful record that was measured as stream"));

  const Json near = Choice("64,32,32");
  EXPECT_EQ(near["source"], "SCHEDULE_COMPATIBLE");
  EXPECT_EQ(near["distance"], 4);
  EXPECT_THAT(Kiln(Query("64,32,32", {})),
              AllOf(HasSubstr("schedule  that of trial "), HasSubstr("of matmul 32,32,32 for null"),
                    HasSubstr("least cost times distance (4)")));
  EXPECT_EQ(Choice("64,32,32", {"--without-compatible"})["source"], "SCHEDULE_SAMPLE");
  EXPECT_THAT(Kiln(Query("64,32,32", {"--without-compatible"})),
              AllOf(HasSubstr(" predicted\n"), HasSubstr("chosen without measuring")));
  EXPECT_EQ(Choice("64,32,32", {"--without-compatible", "--without-sample"})["source"],
            "SCHEDULE_NONE");
  EXPECT_THAT(Kiln(Query("64,32,32", {"--without-compatible", "--without-sample"})),
              HasSubstr("schedule  none: the loops as they are declared"));
}

TEST_F(ChoiceTest, APinnedScheduleComesBeforeRecordsUntilItIsUnpinned) {
  const std::string job = Tune();
  EXPECT_THAT(Kiln({"choice", "list", "--json"}), IsEmpty());
  EXPECT_THAT(
      Kiln({"choice", "pin", job + "/0"}),
      AllOf(HasSubstr("matmul 32,32,32 for null: set to the schedule of trial " + job + "/0, "),
            Not(HasSubstr("in the place"))));
  const Json zero = JsonLines(Kiln({"best", job + "/0", "--json"}))[0];
  EXPECT_EQ(Choice("32,32,32")["source"], "SCHEDULE_SET");
  EXPECT_EQ(Choice("32,32,32")["steps"], zero["steps"]);
  EXPECT_THAT(Kiln(Query("32,32,32", {})), HasSubstr("kiln choice pin has set"));
  EXPECT_THAT(Kiln({"choice", "list"}), AllOf(HasSubstr("matmul 32,32,32"),
                                              HasSubstr(zero["workload_id"].get<std::string>())));

  // The source is changed and set again.
  const std::string file = folder_.Join("mine.sched");
  ASSERT_OK(WriteFile(file, Kiln({"show", job, "--as", "schedule"})));
  EXPECT_THAT(Kiln({"choice", "pin", "matmul", "--args", "32,32,32", "--target", "null",
                    "--schedule", file}),
              AllOf(HasSubstr("set to the schedule of " + file), HasSubstr("in the place of")));
  EXPECT_EQ(Primitives(Kiln(Query("32,32,32", {"--as", "schedule"}))), Primitives(*ReadFile(file)));
  EXPECT_THAT(Kiln(Query("32,32,32", {"--as", "schedule"})),
              AllOf(HasSubstr("# matmul 32,32,32 for null\n#   schedule  one that is set\n"),
                    HasSubstr(".split(")));
  const auto listed = JsonLines(Kiln({"choice", "list", "--json"}));
  ASSERT_THAT(listed, SizeIs(1));
  EXPECT_EQ(listed[0]["name"], "matmul 32,32,32");
  EXPECT_EQ(listed[0]["target"], "null");

  EXPECT_THAT(Error({"choice", "unpin", job, "--target", "llvm"}),
              HasSubstr("no schedule is set for it and target llvm"));
  EXPECT_EQ(Kiln({"choice", "unpin", job}), "1 no longer set\n");
  EXPECT_EQ(Choice("32,32,32")["source"], "SCHEDULE_RECORD");
  EXPECT_THAT(Error({"choice", "unpin", "matmul", "--args", "32,32,32"}),
              HasSubstr("no schedule is set for it in "));
}

TEST_F(ChoiceTest, SetsTheScheduleOfAComputationThatWasNeverTuned) {
  const std::string file = folder_.Join("none.sched");
  ASSERT_OK(WriteFile(file, "# the unscheduled loops\n"));
  EXPECT_THAT(
      Kiln({"choice", "pin", "matmul", "--args", "8,8,8", "--target", "null", "--schedule", file}),
      HasSubstr("matmul 8,8,8 for null: set to"));
  EXPECT_EQ(Choice("8,8,8")["source"], "SCHEDULE_SET");
  EXPECT_EQ(Kiln({"choice", "unpin", "matmul", "--args", "8,8,8"}), "1 no longer set\n");
  ASSERT_OK(WriteFile(file, "s[T_matmul].nonsense()\n"));
  EXPECT_THAT(Error({"choice", "pin", "matmul", "--args", "8,8,8", "--schedule", file}),
              HasSubstr("none.sched"));
  EXPECT_THAT(Error({"choice", "pin"}), HasSubstr("expected what to set a schedule for"));
  EXPECT_THAT(Error({"choice", "pin", "matmul", "--args", "8,8,8"}),
              HasSubstr("no successful record"));
}

TEST_F(ChoiceTest, AConfigurationOfATemplateOfAutotvm) {
  const std::string log = folder_.Join("autotvm.log");
  const auto line = [](int index, const char* cost) {
    return fmt::format(
        R"({{"input": ["cuda -keys=cuda,gpu -model=t4", "dense_small_batch.cuda", )"
        R"([["TENSOR", [1, 768], "float32"], null], {{}}], "config": {{"index": {}, )"
        R"("code_hash": null, "entity": [["tile_k", "sp", [-1, 48]], ["unroll", "ot", 512]]}}, )"
        R"("result": [[{}], 0, 1.4, 1609326547.6], "version": 0.2, "tvm_version": "0.8.dev0"}})"
        "\n",
        index, cost);
  };
  ASSERT_OK(WriteFile(log, line(7, "5e-06") + line(9, "4e-06")));
  Kiln({"records", "import", log});
  const std::string args = R"([["TENSOR", [1, 768], "float32"], null])";
  Words words = {"choice", "query", "dense_small_batch.cuda", "--template-args", args};
  EXPECT_THAT(Error(words), HasSubstr("expected the target as well"));
  words.insert(words.end(), {"--target", "cuda -model=t4"});
  EXPECT_EQ(Kiln(words),
            "configuration 9 of float32[1, 768], null, 4.000 us: tile_k=[-1,48] unroll=512\n");
  words.emplace_back("--json");
  EXPECT_EQ(Json::parse(Kiln(words))["config"]["index"], 9);
  words[4] = "[]";
  EXPECT_THAT(Error(words), HasSubstr("has no record of dense_small_batch.cuda"));
}

// The scheduler answers, and keeps pinned schedules for all its clients.
TEST_F(ChoiceTest, ThroughAScheduler) {
  const std::string job = Tune();
  DaemonProcess scheduler(
      kKiln, {"scheduler", "--log-level", "error", "--tracker", "127.0.0.1:9", "--db", db_});
  ASSERT_OK(scheduler.Start());
  const auto kiln = [&](Words words) {
    words.insert(words.end(), {"--scheduler", scheduler.address()});
    return KilnPrints(words);
  };
  EXPECT_THAT(kiln(Query("32,32,32", {})), HasSubstr("of its records for this target"));
  EXPECT_THAT(kiln({"choice", "pin", job}), HasSubstr("set to the schedule of trial " + job));
  EXPECT_THAT(kiln({"choice", "list"}), HasSubstr("matmul 32,32,32"));
  EXPECT_EQ(JsonLines(kiln(Query("32,32,32", {"--json"})))[0]["choice"]["source"], "SCHEDULE_SET");
  EXPECT_EQ(kiln({"choice", "unpin", "matmul", "--args", "32,32,32"}), "1 no longer set\n");
  EXPECT_THAT(kiln({"choice", "list", "--json"}), IsEmpty());
  ASSERT_OK(scheduler.Stop().status());
}

}  // namespace
}  // namespace kiln::client
