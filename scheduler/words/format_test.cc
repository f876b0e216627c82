#include "scheduler/words/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "proto/job_defaults.h"

namespace kiln {
namespace {

TEST(FormatTest, EveryErrorKindHasAName) {
  for (int kind = 0; v1::ErrorKind_IsValid(kind); ++kind) {
    EXPECT_NE(ErrorName(static_cast<uint32_t>(kind)), "unknown error") << kind;
  }
  EXPECT_EQ(ErrorName(5), "wrong answer");
  EXPECT_EQ(ErrorName(1000), "unknown error");
}

TEST(FormatTest, EveryJobStateHasAName) {
  for (int state = 1; v1::JobState_IsValid(state); ++state) {
    EXPECT_NE(JobStateName(static_cast<v1::JobState>(state)), "unknown") << state;
  }
  EXPECT_EQ(JobStateName(v1::CANCELLED), "cancelled");
  EXPECT_EQ(JobStateName(static_cast<v1::JobState>(77)), "unknown");
}

TEST(FormatTest, ErrorsAreCountedByKindAndSuccessesAreNot) {
  v1::JobStatus job;
  EXPECT_EQ(ErrorCounts(job), "0");
  (*job.mutable_error_counts())[v1::NO_ERROR] = 50;
  (*job.mutable_error_counts())[v1::RUN_TIMEOUT_ERROR] = 1;
  (*job.mutable_error_counts())[v1::WRONG_ANSWER_ERROR] = 2;
  EXPECT_EQ(ErrorCounts(job), "3 (2 wrong answer, 1 run timeout)");
  EXPECT_EQ(NumErrors(job), 3u);
}

TEST(FormatTest, TheCostIsTheMeanAndZeroOnError) {
  v1::TrialResult result;
  EXPECT_EQ(MeanCost(result), 0);
  result.add_costs_s(1);
  result.add_costs_s(3);
  EXPECT_EQ(MeanCost(result), 2);
  result.set_error(v1::WRONG_ANSWER_ERROR);
  EXPECT_EQ(MeanCost(result), 0);
}

TEST(FormatTest, WhatIsNotKnownIsADash) {
  EXPECT_EQ(LatencyCell(0), "-");
  EXPECT_EQ(SpeedCell(-1, 1e-3), "-");
  EXPECT_EQ(SpeedCell(2e9, 0), "-");
  EXPECT_EQ(SpeedCell(2e9, 1), "2.000 GFLOP/s");
  EXPECT_EQ(SpeedUp(0, 1), "");
  EXPECT_EQ(SpeedUp(1, 0), "");
}

TEST(FormatTest, SpeedUpsHaveThreeDigits) {
  EXPECT_EQ(SpeedUp(1.5, 1), "1.50x");
  EXPECT_EQ(SpeedUp(33.333, 1), "33.3x");
  EXPECT_EQ(SpeedUp(333.33, 1), "333x");
}

TEST(FormatTest, WhatWasNotCheckedIsSaid) {
  v1::TrialResult result;
  result.set_max_error(1.5e-7);
  EXPECT_EQ(ErrorCell(result), "1.5e-07");
  EXPECT_EQ(UncheckedText(result), "");
  result.set_unchecked("output y of the reference is 0 in all 64 elements");
  EXPECT_EQ(ErrorCell(result), "unchecked");
  EXPECT_THAT(UncheckedText(result), testing::AllOf(testing::HasSubstr("is 0 in all 64 elements"),
                                                    testing::HasSubstr("--input-range")));
}

TEST(FormatTest, ACostInDoubtIsSaid) {
  v1::Record record;
  EXPECT_EQ(MarkText(record), "");
  record.set_mark("the canary took 1.31 ms; 0.98 to 1.02 ms are usual");
  EXPECT_EQ(MarkText(record),
            "its device was slower than usual, the canary took 1.31 ms; 0.98 to 1.02 ms are usual");
}

TEST(FormatTest, WhatASpeedUpIsOf) {
  v1::TaskStatus task;
  v1::Record best;
  best.set_id(7);
  best.mutable_result()->add_costs_s(1e-3);
  EXPECT_EQ(SpeedUpText(task, best), "not known: the unscheduled loops were not measured");
  best.mutable_result()->set_sampled_outputs(100);
  EXPECT_EQ(SpeedUpText(task, best),
            "not known: the unscheduled loops take longer than --reference-limit");
  task.set_reference_cost_s(0.2);
  task.set_reference_record_id(3);
  EXPECT_EQ(SpeedUpText(task, best), "200x over the unscheduled loops (200.0 ms)");
  task.set_reference_message("timed in one call");
  EXPECT_EQ(SpeedUpText(task, best),
            "200x over the unscheduled loops (200.0 ms, timed in one call)");
  task.set_reference_record_id(7);
  EXPECT_EQ(SpeedUpText(task, best),
            "none: nothing that was tried is faster than the unscheduled loops");
}

TEST(FormatTest, WhatAJobMayTake) {
  v1::JobStatus job;
  v1::TuneOptions& options = *job.mutable_spec()->mutable_options();
  options.set_trials(64);
  job.set_trials_done(16);
  job.set_elapsed_s(300);
  EXPECT_EQ(LimitsText(options), "64 trials");
  EXPECT_EQ(TrialsText(job), "16/64");
  EXPECT_EQ(ProgressOf(job), 0.25);
  options.set_time_budget_s(600);
  EXPECT_EQ(LimitsText(options), "64 trials or 10 minutes");
  EXPECT_EQ(ProgressOf(job), 0.5);
  options.set_trials(kMaxTrials);
  EXPECT_EQ(LimitsText(options), "10 minutes");
  EXPECT_EQ(TrialsText(job), "16");
  EXPECT_EQ(ProgressOf(job), 0.5);
  job.set_elapsed_s(700);
  EXPECT_EQ(ProgressOf(job), 1);
}

TEST(FormatTest, EveryEndingHasWordsOfItsOwn) {
  std::set<std::string> all;
  v1::JobStatus job;
  job.set_trials_done(5);
  EXPECT_EQ(EndingText(job), "");
  for (int ending = 1; v1::JobEnding_IsValid(ending); ++ending) {
    job.set_ending(static_cast<v1::JobEnding>(ending));
    EXPECT_FALSE(EndingText(job).empty()) << ending;
    EXPECT_TRUE(all.insert(EndingText(job)).second) << ending;
  }
  job.set_ending(v1::TARGET_REACHED);
  EXPECT_EQ(EndingText(job), "the latency target is reached, after 5 trials");
}

TEST(FormatTest, TargetsHaveShortNames) {
  EXPECT_EQ(ShortTarget("llvm -mattr=+avx2,+fma,-sse4a -mcpu=znver4 -num-cores=2"),
            "llvm znver4, 3 features");
  EXPECT_EQ(ShortTarget("llvm -mcpu=x86-64-v4"), "llvm x86-64-v4");
  EXPECT_EQ(ShortTarget("llvm -mattr=+avx2"), "llvm, 1 feature");
  EXPECT_EQ(ShortTarget("cuda -arch=sm_90 -max_threads_per_block=512"), "cuda sm_90");
  EXPECT_EQ(ShortTarget("null"), "null");
  EXPECT_EQ(ShortTarget("hexagon -mcpu=x"), "hexagon -mcpu=x");
  EXPECT_EQ(BriefTarget("llvm -mattr=+avx2,+fma,-sse4a -mcpu=znver4 -num-cores=2"), "llvm znver4");
  EXPECT_EQ(BriefTarget("llvm -mattr=+avx2"), "llvm");
  EXPECT_EQ(BriefTarget("cuda -arch=sm_90"), "cuda sm_90");
  EXPECT_EQ(BriefTarget("hexagon -mcpu=x"), "hexagon -mcpu=x");
}

TEST(FormatTest, TrialsAreNamedByJobAndNumber) {
  v1::Record record;
  record.set_job_id("1f740d66");
  record.set_trial(56);
  EXPECT_EQ(TrialName(record), "1f740d66/56");
  const auto trial = ParseTrialName("1f740d66/56");
  ASSERT_TRUE(trial.has_value());
  EXPECT_EQ(trial->job_id, "1f740d66");
  EXPECT_EQ(trial->number, 56u);
  for (const char* other :
       {"1f740d66", "/56", "job/", "job/5x", "job/-1", "a/b/1", "job/4294967296"}) {
    EXPECT_FALSE(ParseTrialName(other).has_value()) << other;
  }
}

}  // namespace
}  // namespace kiln
