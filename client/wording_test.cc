#include "client/wording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::client {
namespace {

TEST(WordingTest, EveryErrorKindHasAName) {
  for (int kind = 0; v1::ErrorKind_IsValid(kind); ++kind) {
    EXPECT_NE(ErrorName(static_cast<uint32_t>(kind)), "unknown error") << kind;
  }
  EXPECT_EQ(ErrorName(5), "wrong answer");
  EXPECT_EQ(ErrorName(1000), "unknown error");
}

TEST(WordingTest, EveryJobStateHasAName) {
  for (int state = 1; v1::JobState_IsValid(state); ++state) {
    EXPECT_NE(JobStateName(static_cast<v1::JobState>(state)), "unknown") << state;
  }
  EXPECT_EQ(JobStateName(v1::CANCELLED), "cancelled");
  EXPECT_EQ(JobStateName(static_cast<v1::JobState>(77)), "unknown");
}

TEST(WordingTest, ErrorsAreCountedByKindAndSuccessesAreNot) {
  v1::JobStatus job;
  EXPECT_EQ(ErrorCounts(job), "0");
  (*job.mutable_error_counts())[v1::NO_ERROR] = 50;
  (*job.mutable_error_counts())[v1::RUN_TIMEOUT_ERROR] = 1;
  (*job.mutable_error_counts())[v1::WRONG_ANSWER_ERROR] = 2;
  EXPECT_EQ(ErrorCounts(job), "3 (2 wrong answer, 1 run timeout)");
  EXPECT_EQ(NumErrors(job), 3u);
}

TEST(WordingTest, TheCostIsTheMeanAndZeroOnError) {
  v1::TrialResult result;
  EXPECT_EQ(MeanCost(result), 0);
  result.add_costs_s(1);
  result.add_costs_s(3);
  EXPECT_EQ(MeanCost(result), 2);
  result.set_error(v1::WRONG_ANSWER_ERROR);
  EXPECT_EQ(MeanCost(result), 0);
}

TEST(WordingTest, WhatIsNotKnownIsADash) {
  EXPECT_EQ(LatencyCell(0), "-");
  EXPECT_EQ(SpeedCell(-1, 1e-3), "-");
  EXPECT_EQ(SpeedCell(2e9, 0), "-");
  EXPECT_EQ(SpeedCell(2e9, 1), "2.000 GFLOP/s");
  EXPECT_EQ(SpeedUp(0, 1), "");
  EXPECT_EQ(SpeedUp(1, 0), "");
}

TEST(WordingTest, SpeedUpsHaveThreeDigits) {
  EXPECT_EQ(SpeedUp(1.5, 1), "1.50x");
  EXPECT_EQ(SpeedUp(33.333, 1), "33.3x");
  EXPECT_EQ(SpeedUp(333.33, 1), "333x");
}

TEST(WordingTest, WhatWasNotCheckedIsSaid) {
  v1::TrialResult result;
  result.set_max_error(1.5e-7);
  EXPECT_EQ(ErrorCell(result), "1.5e-07");
  EXPECT_EQ(UncheckedText(result), "");
  result.set_unchecked("output y of the reference is 0 in all 64 elements");
  EXPECT_EQ(ErrorCell(result), "unchecked");
  EXPECT_THAT(UncheckedText(result), testing::AllOf(testing::HasSubstr("is 0 in all 64 elements"),
                                                    testing::HasSubstr("--input-range")));
}

TEST(WordingTest, ShellWordsAreQuotedWhereNeeded) {
  EXPECT_EQ(ShellWord("bazel-bin/client/kiln"), "bazel-bin/client/kiln");
  EXPECT_EQ(ShellWord("my db"), "'my db'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord("$(x)"), "'$(x)'");
  EXPECT_EQ(ShellWord(""), "''");
}

TEST(WordingTest, FirstLines) {
  EXPECT_EQ(FirstLine("one\ntwo"), "one");
  EXPECT_EQ(FirstLine("one"), "one");
  EXPECT_EQ(FirstLine(""), "");
}

}  // namespace
}  // namespace kiln::client
