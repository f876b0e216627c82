#include "scheduler/jobs/job_ending.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"

namespace kiln::scheduler {
namespace {

using store::JobEnding;
using testing::HasSubstr;

store::TrialCounts Counts(int64_t right, int64_t failed) {
  store::TrialCounts counts;
  counts.total = right + failed;
  counts.by_error[store::kNoError] = right;
  counts.by_error[2] = failed;
  return counts;
}

v1::TuneOptions Options() {
  v1::TuneOptions options;
  options.set_trials(64);
  options.set_latency_target_s(2.5e-3);
  options.set_time_budget_s(90);
  return options;
}

TEST(JobEnding, AJobThatTookItsTrialsHasNothingToSay) {
  ASSERT_OK_AND_ASSIGN(const std::string remark,
                       RemarkOn(JobEnding::kTrialsUsedUp, Options(), Counts(60, 4)));
  EXPECT_EQ(remark, "");
}

TEST(JobEnding, SaysWhyThereWereFewerTrials) {
  const auto remark = [](JobEnding ending, const v1::TuneOptions& options) {
    return *RemarkOn(ending, options, Counts(12, 4));
  };
  EXPECT_EQ(remark(JobEnding::kTargetReached, Options()),
            "16 of 64 trials: the latency asked for, 2.5 ms, is reached");
  EXPECT_EQ(remark(JobEnding::kTimeUsedUp, Options()),
            "16 of 64 trials: its 1.5 minutes are used up");
  EXPECT_EQ(remark(JobEnding::kSpaceExhausted, Options()),
            "16 of 64 trials: no candidates are left");
  v1::TuneOptions largest = Options();
  largest.set_objective("max");
  EXPECT_THAT(remark(JobEnding::kSpaceExhausted, largest), HasSubstr("largest latency"));
}

TEST(JobEnding, WithoutOneRightProgramTheJobFails) {
  const auto remark = RemarkOn(JobEnding::kTrialsUsedUp, Options(), Counts(0, 5));
  EXPECT_EQ(remark.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(remark.status())),
              HasSubstr("none of the 5 trials gave a correct program; most common: COMPILE_HOST"));
}

}  // namespace
}  // namespace kiln::scheduler
