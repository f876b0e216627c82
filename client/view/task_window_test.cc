#include "client/view/task_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Returns tasks of 1, 2, ... ms, whose unscheduled loops take 10 ms; the last task has no result.
v1::JobStatus Job(int tasks) {
  v1::JobStatus job;
  for (int i = 0; i < tasks; ++i) {
    v1::TaskStatus& task = *job.add_tasks();
    task.mutable_spec()->set_weight(1);
    task.set_reference_cost_s(10e-3);
    if (i + 1 < tasks) task.set_best_cost_s(1e-3 * (i + 1));
  }
  return job;
}

TEST(TaskWindowTest, AllWhereTheyFit) {
  EXPECT_THAT(TaskWindow(Job(3), 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(TaskWindow(v1::JobStatus(), 0), IsEmpty());
}

TEST(TaskWindowTest, TheOneInHandThenTheSlowestAndTheMostGained) {
  v1::JobStatus job = Job(10);
  EXPECT_THAT(TaskWindow(job, 1), ElementsAre(8));
  EXPECT_THAT(TaskWindow(job, 4), ElementsAre(0, 1, 7, 8));
  // next_task 5 means task 4.
  job.set_next_task(5);
  EXPECT_THAT(TaskWindow(job, 4), ElementsAre(0, 4, 7, 8));
  job.mutable_tasks(3)->mutable_spec()->set_weight(100);
  EXPECT_THAT(TaskWindow(job, 2), ElementsAre(3, 4));
  EXPECT_THAT(TaskWindow(job, 9), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8)) << "no result is last";
  EXPECT_THAT(TaskWindow(job, 0), IsEmpty());
}

TEST(TaskWindowTest, VariantsOfAGroupStayTogether) {
  v1::JobStatus job = Job(5);
  job.mutable_tasks(3)->mutable_spec()->set_alternative_of(2);
  EXPECT_THAT(TaskWindow(job, 4), ElementsAre(0, 1, 2, 3));
  // next_task 4 means task 3, the other variant.
  job.set_next_task(4);
  EXPECT_THAT(TaskWindow(job, 2), ElementsAre(2, 3));
  EXPECT_THAT(TaskWindow(job, 1), ElementsAre(0)) << "a group that does not fit is passed over";
}

}  // namespace
}  // namespace kiln::client
