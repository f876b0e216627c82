// kiln schedule by the real binary: a schedule, its source, a program that runs, and wrong usage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file/file.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;

using ScheduleTest = KilnTest;

TEST_F(ScheduleTest, SaysWhatWasChosenAndHowSureItIs) {
  const std::string text =
      KilnPrints({"schedule", "matmul", "--args", "64,64,64", "--target", "llvm"});
  EXPECT_THAT(text,
              AllOf(StartsWith("matmul 64,64,64, complex reduction, for llvm"),
                    HasSubstr("Nothing was measured: of "),
                    HasSubstr(" schedules this one is the fastest by the analytic model, "),
                    HasSubstr("Tuning with 64 trials makes it about 1.3 times as fast, seldom "
                              "more than 2.0 times as fast"),
                    HasSubstr("one point of 49,392 ("), HasSubstr("_i: 64 = "),
                    HasSubstr(".vectorize("), HasSubstr(".parallel(")));
}

TEST_F(ScheduleTest, EveryFormOfItsSource) {
  const Words cpu = {"schedule", "softmax", "--args", "8,64", "--target", "llvm"};
  for (const auto& [form, part] :
       {std::pair{"steps", "[[\""}, {"program", "kernel"}, {"llvm", "define"}, {"loops", "for "}}) {
    Words words = cpu;
    words.insert(words.end(), {"--as", form});
    EXPECT_THAT(KilnPrints(words), HasSubstr(part)) << form;
  }
  EXPECT_THAT(KilnPrints({"schedule", "matmul", "--args", "64,64,64", "--target",
                          "cuda -arch=sm_90", "--as", "cuda"}),
              HasSubstr("__global__"));
}

TEST_F(ScheduleTest, TheSameSeedChoosesTheSame) {
  const Words words = {"schedule", "conv2d_nhwc", "--args", "1,8,8,16,16,3,3,1,1", "--as", "steps"};
  EXPECT_EQ(KilnPrints(words), KilnPrints(words));
}

TEST_F(ScheduleTest, AsJson) {
  const Json row = Json::parse(KilnPrints(
      {"schedule", "matmul", "--args", "64,64,64", "--target", "cuda -arch=sm_90", "--json"}));
  EXPECT_EQ(row["class"], "complex reduction");
  EXPECT_EQ(row["target"], "cuda -arch=sm_90");
  EXPECT_TRUE(row["steps"].is_array());
  EXPECT_GT(row["predicted_s"], 0);
  EXPECT_GT(row["looked_at"], 1);
  EXPECT_GT(row["share_of_tuned_speed"]["low"], 0);
}

TEST_F(ScheduleTest, MathIsAnOptionOfTheTarget) {
  const Words words = {"schedule",    "matmul",   "--args",
                       "512,512,512", "--target", "cuda -arch=sm_90"};
  const auto with = [&](const Words& more) {
    Words all = words;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  EXPECT_EQ(Json::parse(KilnPrints(with({"--math", "tf32", "--json"})))["target"],
            "cuda -arch=sm_90 -math=tf32");
  EXPECT_EQ(Json::parse(KilnPrints(with({"--math", "full", "--json"})))["target"],
            "cuda -arch=sm_90");
  EXPECT_THAT(KilnPrints(with({"--math", "tf32", "--as", "cuda"})),
              AnyOf(HasSubstr("multiply_tiles_tf32("), HasSubstr("multiply_warpgroup_tf32<")));
  EXPECT_THAT(KilnPrints(with({"--as", "cuda"})),
              Not(AnyOf(HasSubstr("multiply_tiles_tf32("), HasSubstr("multiply_warpgroup_tf32<"))));
  EXPECT_THAT(Refused(with({"--math", "half"})), HasSubstr("--math"));
  EXPECT_THAT(Refused({"schedule", "matmul", "--args", "64,64,64", "--math", "tf32"}),
              HasSubstr("target 'cuda -math=tf32' names no architecture"));
  EXPECT_THAT(
      Refused({"schedule", "matmul", "--args", "64,64,64", "--target", "llvm", "--math", "tf32"}),
      HasSubstr("target llvm has no option 'math'"));
}

// The command takes a text file as well as an operator. kiln run runs the written file.
TEST_F(ScheduleTest, AProgramThatRuns) {
  const std::string file = folder_.Join("twice.te"), program = folder_.Join("twice.kiln");
  ASSERT_TRUE(WriteFile(file, "input A: float32[64]\nB[i: 64] = A[i] * 2.0\n").ok());
  KilnPrints({"schedule", file, "--target", "llvm", "-o", program});
  KilnPrints({"run", program, "--random", "--output", folder_.Join("b.npy")});
  EXPECT_TRUE(FileExists(folder_.Join("b.npy")));
  EXPECT_THAT(KilnPrints({"verify", program, "--kernels"}), HasSubstr("0 of 1 output wrong"));
}

TEST_F(ScheduleTest, Refusals) {
  EXPECT_THAT(Refused({"schedule"}), HasSubstr("what"));
  EXPECT_THAT(Refused({"schedule", "matmull", "--args", "8,8,8"}), HasSubstr("matmul"));
  EXPECT_THAT(Refused({"schedule", "matmul", "--args", "8,8"}), HasSubstr("matmul"));
  EXPECT_THAT(Refused({"schedule", "matmul", "--args", "8,8,8", "--as", "ptx"}),
              HasSubstr("--as: ptx not in {dag,steps,schedule,tvm,loops,"));
  EXPECT_THAT(Refused({"schedule", "matmul", "--args", "8,8,8", "--target", "tpu"}),
              HasSubstr("unknown target 'tpu', expected llvm, cuda or null"));
  EXPECT_THAT(Refused({"schedule", "matmul", "--args", "8,8,8", "--seed", "-1"}),
              HasSubstr("--seed"));
  EXPECT_THAT(Refused({"schedule", folder_.Join("none.te")}), HasSubstr("none.te"));
}

// Tuning without trials shows the schedule that tuning would have to beat.
TEST_F(ScheduleTest, NoTrialsShowTheSchedule) {
  const Words words = {"tune", "matmul", "--args", "64,64,64", "--trials", "0"};
  EXPECT_THAT(KilnPrints(words),
              AllOf(HasSubstr("Untuned"), HasSubstr("the times are predictions")));
  Words json_words = words;
  json_words.push_back("--json");
  const Json row = Json::parse(KilnPrints(json_words));
  EXPECT_TRUE(row["untuned"]["steps"].is_array());
  EXPECT_GT(row["untuned"]["predicted_s"], 0);
}

}  // namespace
}  // namespace kiln::client
