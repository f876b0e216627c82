#include "scheduler/jobs/time_budget.h"

#include <gtest/gtest.h>

#include <cmath>

#include "scheduler/values/job_testing.h"

namespace kiln::scheduler {
namespace {

v1::JobSpec JobOf(double budget_s, int finalists) {
  v1::JobSpec spec = TestJob(100);
  spec.mutable_options()->set_time_budget_s(budget_s);
  spec.mutable_options()->set_finalists(finalists);
  // A turn of the final race takes two readings of at least 100 ms.
  spec.mutable_options()->mutable_measure()->set_min_repeat_ms(100);
  spec.mutable_options()->mutable_measure()->set_repeat(1);
  return spec;
}

TEST(TimeBudget, ActiveTimeIsThatOfAllRuns) {
  FakeClock clock;
  TimeBudget budget(10, clock);
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(budget.active_s(), 10) << "no device yet";
  budget.Begin();
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(budget.active_s(), 13);
}

TEST(TimeBudget, EarlierRunsAndTheFinalRaceTakeTheirPart) {
  FakeClock clock;
  TimeBudget budget(30, clock);
  budget.Begin();
  const double now_s = clock.MonotonicSeconds();
  const TimeBudget::Deadlines of = budget.DeadlinesOf(JobOf(100, 4));
  EXPECT_DOUBLE_EQ(of.final_race_s, now_s + 70);
  EXPECT_DOUBLE_EQ(of.search_s, now_s + 70 - 5) << "4 finalists of 5 turns, a quarter second each";
  EXPECT_DOUBLE_EQ(budget.DeadlinesOf(JobOf(100, 1000)).search_s, now_s + 70 - 20)
      << "a fifth of the budget at most";
  v1::JobSpec with_alternative = JobOf(100, 4);
  *with_alternative.add_tasks() = with_alternative.tasks(0);
  with_alternative.mutable_tasks(1)->set_alternative_of(0);
  EXPECT_DOUBLE_EQ(budget.DeadlinesOf(with_alternative).search_s, of.search_s)
      << "one of the two is raced";
  EXPECT_EQ(budget.DeadlinesOf(JobOf(100, -1)).search_s, of.final_race_s) << "no final race";
}

TEST(TimeBudget, WhatWasReadWhileTheDeviceWaitedIsNotReadAgain) {
  FakeClock clock;
  TimeBudget budget(0, clock);
  budget.Begin();
  v1::JobSpec spec = JobOf(100, 4);
  spec.mutable_options()->mutable_measure()->set_idle_ms(50);  // a turn takes two readings of 10 ms
  EXPECT_DOUBLE_EQ(budget.DeadlinesOf(spec).search_s, clock.MonotonicSeconds() + 100 - 4 * 0.07);
  spec.mutable_options()->set_lock_step(true);  // the device waits, and reads no elites
  EXPECT_DOUBLE_EQ(budget.DeadlinesOf(spec).search_s,
                   clock.MonotonicSeconds() + 100 - 5 * 4 * 0.07);
}

TEST(TimeBudget, WithoutABudgetThereIsNoDeadline) {
  FakeClock clock;
  TimeBudget budget(30, clock);
  budget.Begin();
  EXPECT_TRUE(std::isinf(budget.DeadlinesOf(JobOf(0, 4)).search_s));
  EXPECT_TRUE(std::isinf(budget.DeadlinesOf(JobOf(0, 4)).final_race_s));
}

}  // namespace
}  // namespace kiln::scheduler
