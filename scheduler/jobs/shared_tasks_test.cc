#include "scheduler/jobs/shared_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/values/job_testing.h"

namespace kiln::scheduler {
namespace {

using testing::Each;
using testing::ElementsAre;

std::string KeyOf(const v1::JobSpec& spec) { return TaskKeysOf(spec).at(0); }

TEST(SharedTasks, HowLongAJobSearchesDoesNotMatter) {
  const v1::JobSpec spec = TestJob(64);
  v1::JobSpec other = TestJob(1000);
  other.set_user("bob");
  other.set_name("another name");
  other.set_priority(3);
  other.set_request_id("r");
  other.mutable_tasks(0)->set_weight(7);
  other.mutable_tasks(0)->set_description("a product");
  other.mutable_options()->set_early_stopping(5);
  other.mutable_options()->set_time_budget_s(60);
  other.mutable_options()->set_trials_per_round(3);
  other.mutable_options()->mutable_measure()->set_timeout_ms(9);
  EXPECT_EQ(KeyOf(spec), KeyOf(other));
  *other.add_tasks() = TestTask(32);
  EXPECT_EQ(TaskKeysOf(other)[0], KeyOf(spec));
  EXPECT_NE(TaskKeysOf(other)[1], KeyOf(spec));
}

TEST(SharedTasks, WhatIsMeasuredAndHowItIsSearchedDoes) {
  std::set<std::string> keys = {KeyOf(TestJob(64))};
  const auto add = [&](const auto& change) {
    v1::JobSpec spec = TestJob(64);
    change(spec);
    EXPECT_TRUE(keys.insert(KeyOf(spec)).second) << spec.ShortDebugString();
  };
  add([](v1::JobSpec& spec) { *spec.mutable_tasks(0) = TestTask(32); });
  add([](v1::JobSpec& spec) { spec.mutable_tasks(0)->set_target("llvm"); });
  add([](v1::JobSpec& spec) { spec.set_device("NVIDIA H200"); });
  add([](v1::JobSpec& spec) { spec.mutable_options()->set_seed(8); });
  add([](v1::JobSpec& spec) { spec.mutable_options()->set_policy("sketch.xgb"); });
  add([](v1::JobSpec& spec) { spec.mutable_options()->set_finalists(-1); });
  add([](v1::JobSpec& spec) { spec.mutable_options()->mutable_tolerance()->set_relative(1); });
  add([](v1::JobSpec& spec) { spec.mutable_options()->mutable_measure()->set_flush_cache(true); });
  add([](v1::JobSpec& spec) {
    spec.mutable_options()->mutable_measure()->set_single_launches(true);
  });
  add([](v1::JobSpec& spec) { (*spec.mutable_options()->mutable_policy_parameters())["a"] = 1; });
}

TEST(SharedTasks, TheOrderOfParametersDoesNotMatter) {
  v1::JobSpec spec = TestJob(64), other = TestJob(64);
  for (int i = 0; i < 50; ++i) {
    (*spec.mutable_options()->mutable_policy_parameters())["p" + std::to_string(i)] = i;
    (*other.mutable_options()->mutable_policy_parameters())["p" + std::to_string(49 - i)] = 49 - i;
  }
  EXPECT_EQ(KeyOf(spec), KeyOf(other));
}

TEST(SharedTasks, SomeJobsTuneByThemselvesInAnyCase) {
  const auto keys_of = [](const auto& change) {
    v1::JobSpec spec = TestJob(64);
    *spec.add_tasks() = TestTask(32);
    change(spec);
    return TaskKeysOf(spec);
  };
  EXPECT_THAT(keys_of([](v1::JobSpec& s) { s.mutable_options()->set_no_warm_start(true); }),
              ElementsAre("", ""));
  EXPECT_THAT(keys_of([](v1::JobSpec& s) { s.mutable_options()->set_calibrate(true); }), Each(""));
  EXPECT_THAT(keys_of([](v1::JobSpec& s) { s.mutable_served()->set_objective(true); }), Each(""));
  EXPECT_THAT(keys_of([](v1::JobSpec& s) { (*s.mutable_options()->mutable_faults())[3] = 1; }),
              Each(""));
  EXPECT_THAT(keys_of([](v1::JobSpec&) {}), Each(testing::Ne("")));
}

TEST(SharedTasks, TheMostUrgentTunerOfEachTaskUnlessItIsLessUrgent) {
  TunedTasks tuned;
  tuned.Add("first", 0, {"a", "b", ""});
  tuned.Add("second", 0, {"b", "c"});
  tuned.Add("urgent", 5, {"b"});
  EXPECT_THAT(tuned.TunersOf({"a", "b", "c", "d", ""}, 0),
              ElementsAre("first", "urgent", "second", "", ""));
  EXPECT_THAT(tuned.TunersOf({"a", "b"}, 5), ElementsAre("", "urgent"));
  EXPECT_THAT(tuned.TunersOf({"b"}, 6), ElementsAre(""));
}

TEST(SharedTasks, AJobWaitsIfNothingIsLeftToDo) {
  EXPECT_TRUE(WaitsForAll({"j", "k"}));
  EXPECT_FALSE(WaitsForAll({"j", ""}));
  EXPECT_FALSE(WaitsForAll({}));
  EXPECT_EQ(WaitPhase({"j"}), "waits for the results of job j, which tunes the same task");
  EXPECT_EQ(WaitPhase({"j", "j"}), "waits for the results of job j, which tunes the same tasks");
  EXPECT_EQ(WaitPhase({"k", "j"}), "waits for the results of jobs j, k, which tune the same tasks");
}

}  // namespace
}  // namespace kiln::scheduler
