#include "scheduler/jobs/job_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/dag/ops/registry.h"
#include "compiler/schedule/step.h"

namespace kiln::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

search::Task MakeTask() {
  const auto target = target::ParseTarget("llvm");
  const auto dag = dag::BuildOp("matmul", "8,8,8", {});
  KILN_CHECK(target.ok() && dag.ok(), "the task does not parse");
  return search::Task(*dag, *target, target::DefaultHardware(*target, 2), "a workload");
}

class JobHistoryTest : public testing::Test {
 protected:
  // Adds a record whose candidate differs from those of other trials.
  store::Record& Add(uint32_t trial, double cost_s) {
    store::Record& record = records_.emplace_back();
    record.id = 100 + trial;
    record.trial = trial;
    record.target = target::PrintTarget(tasks_[0].target);
    record.steps = fmt::format(R"([["SP", 2, 0, 512, [{}], 1]])", trial + 1);
    record.costs_s = {cost_s};
    record.origin = fmt::format("template mine, config {}", trial);
    return record;
  }

  JobHistory History() const { return HistoryOf("job", records_, tasks_); }

  std::vector<search::Task> tasks_{MakeTask()};
  std::vector<store::Record> records_;
};

TEST_F(JobHistoryTest, NothingIsKnownOfANewJob) {
  const JobHistory history = History();
  EXPECT_EQ(history.trials, 0u);
  EXPECT_EQ(history.next_trial, 0u);
  EXPECT_THAT(history.missing_trials, IsEmpty());
  ASSERT_THAT(history.tasks, SizeIs(1));
  EXPECT_FALSE(history.tasks[0].best_cost_s.has_value());
}

TEST_F(JobHistoryTest, GapsInTheNumbersAreMissing) {
  Add(1, 1e-3);
  Add(4, 2e-3);
  const JobHistory history = History();
  EXPECT_EQ(history.trials, 2u);
  EXPECT_EQ(history.next_trial, 5u);
  EXPECT_THAT(history.missing_trials, ElementsAre(0, 2, 3));
}

TEST_F(JobHistoryTest, FailedAndStoppedTrialsAreObservedButLeadNothing) {
  Add(0, 4e-3);
  Add(1, 0).error = 2;
  Add(2, 1e-3).stopped_early = true;
  Add(3, 3e-3);
  const TaskHistory history = History().tasks[0];
  ASSERT_THAT(history.observations, SizeIs(4));
  EXPECT_FALSE(history.observations[1].valid);
  EXPECT_EQ(history.observations[1].cost_s, 0);
  EXPECT_EQ(history.observations[2].cost_s, 1e-3);
  EXPECT_EQ(history.observations[2].candidate.origin, "template mine, config 2");
  EXPECT_EQ(history.best_cost_s, 3e-3);
  ASSERT_THAT(history.elites, SizeIs(2));
  EXPECT_EQ(history.elites[1].record_id, 103);
  EXPECT_EQ(history.elites[1].hash, history.observations[3].candidate.hash);
}

TEST_F(JobHistoryTest, OtherTargetsAndOldStepsCountAsTrialsOnly) {
  Add(0, 1e-3).target = "llvm -mcpu=another";
  Add(1, 1e-3).steps = "no steps at all";
  Add(2, 1e-3).task_index = 7;
  Add(3, 5e-3);
  const JobHistory history = History();
  EXPECT_EQ(history.trials, 4u);
  EXPECT_EQ(history.next_trial, 4u);
  EXPECT_THAT(history.missing_trials, IsEmpty());
  ASSERT_THAT(history.tasks[0].observations, SizeIs(1));
  EXPECT_EQ(history.tasks[0].observations[0].trial, 3u);
}

TEST_F(JobHistoryTest, FurtherReadingsAreKnownAndDecide) {
  store::Record& record = Add(0, 4e-3);
  record.remeasured_costs_s = {2e-3, 2e-3, 2e-3};
  record.remeasurements = 3;
  record.remeasured_device = "gpu 7";
  const TaskHistory history = History().tasks[0];
  EXPECT_EQ(history.best_cost_s, 2e-3);
  ASSERT_THAT(history.elites, SizeIs(1));
  EXPECT_EQ(history.elites[0].cost_s, 4e-3) << "what its trial measured";
  EXPECT_EQ(history.elites[0].known.readings, 3u);
  EXPECT_EQ(history.elites[0].known.device, "gpu 7");
}

}  // namespace
}  // namespace kiln::scheduler
