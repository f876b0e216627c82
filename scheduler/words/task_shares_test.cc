#include "scheduler/words/task_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

v1::TaskStatus& AddTask(v1::JobStatus& job, double weight, double best_s) {
  v1::TaskStatus& task = *job.add_tasks();
  task.mutable_spec()->set_weight(weight);
  task.set_best_cost_s(best_s);
  return task;
}

// Two tasks; the second one has a slow variant, and another that is faster.
v1::JobStatus TwoTasks() {
  v1::JobStatus job;
  AddTask(job, 2, 1e-3);
  AddTask(job, 3, 50e-3);
  AddTask(job, 3, 2e-3).mutable_spec()->set_alternative_of(1);
  return job;
}

TEST(TaskSharesTest, AGroupOfVariantsCountsByItsFastestOne) {
  EXPECT_THAT(SharesOf(TwoTasks()), ElementsAre(DoubleEq(0.25), 0, DoubleEq(0.75)));
}

TEST(TaskSharesTest, ThereAreNoneWithoutATotal) {
  v1::JobStatus job = TwoTasks();
  job.mutable_tasks(0)->set_best_cost_s(0);
  EXPECT_THAT(SharesOf(job), ElementsAre(0, 0, 0));
  EXPECT_TRUE(SharesOf(v1::JobStatus()).empty());
}

TEST(TaskSharesTest, ThereAreNoneOfAnObjectiveThatIsNoSum) {
  v1::JobStatus job = TwoTasks();
  job.mutable_spec()->mutable_options()->set_objective("max");
  EXPECT_THAT(SharesOf(job), ElementsAre(0, 0, 0));
}

}  // namespace
}  // namespace kiln
