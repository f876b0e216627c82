#include "training/earlier_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"
#include "costmodel/make_cost_model.h"
#include "search/policies/samples.h"
#include "store/memory_store.h"

namespace kiln::training {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class EarlierResultsTest : public testing::Test {
 protected:
  static search::Task MakeTask(const std::string& size, std::string_view target = "llvm") {
    const auto parsed = target::ParseTarget(target);
    const auto dag = dag::BuildOp("matmul", size + "," + size + "," + size, {});
    EXPECT_OK(parsed.status());
    EXPECT_OK(dag.status());
    return search::Task(*dag, *parsed, target::DefaultHardware(*parsed, 2), dag::WorkloadId(**dag));
  }

  // Adds records of candidates that a random search finds. Every fourth one failed.
  void Measure(const std::string& job, const search::Task& task, int count,
               const std::string& device = "cpu") {
    ASSERT_OK(store_->AddJob({.id = job}));
    ASSERT_OK_AND_ASSIGN(const auto policy, search::MakePolicy("sketch.random", task, 3));
    ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(count));
    ASSERT_THAT(candidates, SizeIs(count));
    for (int i = 0; i < count; ++i) {
      store::Record record;
      record.job_id = job;
      record.trial = static_cast<uint32_t>(i);
      record.workload_id = dag::WorkloadId(*task.dag);
      record.workload_key = dag::WorkloadKey(*task.dag);
      record.dag = dag::PrintDag(*task.dag);
      record.target = target::PrintTarget(task.target);
      record.steps = schedule::PrintSteps(candidates[i].steps);
      record.device = device;
      if (i % 4 == 3) {
        record.error = 2;
      } else {
        record.costs_s = {1e-3 * (i + 1)};
      }
      ASSERT_OK(store_->AddRecord(record).status());
    }
  }

  EarlierResults Gather(std::string_view job, std::span<const search::Task> tasks,
                        std::string_view device = "cpu", uint32_t latest = 1000) {
    auto found =
        GatherEarlierResults(*store_, job, tasks, device, pool_, {.latest_records = latest});
    EXPECT_OK(found.status());
    return *std::move(found);
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  ThreadPool pool_{2};
};

TEST_F(EarlierResultsTest, TheSameTaskIsObservedAndOthersAreSamples) {
  const search::Task same = MakeTask("64"), other = MakeTask("32");
  Measure("a", same, 12);
  Measure("b", other, 8);
  const EarlierResults results = Gather("new", std::span(&same, 1));
  ASSERT_THAT(results.of_tasks, SizeIs(1));
  ASSERT_THAT(results.of_tasks[0].observations, SizeIs(12));
  EXPECT_THAT(results.of_tasks[0].avoid, IsEmpty());
  ASSERT_TRUE(results.of_tasks[0].best.has_value());
  EXPECT_DOUBLE_EQ(results.of_tasks[0].best->cost_s, 1e-3);
  EXPECT_EQ(results.of_tasks[0].best->record_id, 1);
  for (int i = 0; i < 12; ++i) {
    const search::Observation& o = results.of_tasks[0].observations[i];
    EXPECT_EQ(o.valid, i % 4 != 3);
    EXPECT_DOUBLE_EQ(o.cost_s, o.valid ? 1e-3 * (i + 1) : 0);
    EXPECT_EQ(o.candidate.hash, schedule::HashSteps(o.candidate.steps));
  }
  ASSERT_THAT(results.of_others, SizeIs(8));
  EXPECT_EQ(results.of_others[0].task, search::SampleTask(other, "cpu"));
  EXPECT_DOUBLE_EQ(results.of_others[2].cost_s.value(), 3e-3);
  EXPECT_EQ(results.of_others[3].cost_s, std::nullopt);
  EXPECT_GT(results.of_others[0].rows->rows(), 0);
}

TEST_F(EarlierResultsTest, NothingIsProposedThatWasMeasuredBefore) {
  const search::Task task = MakeTask("64");
  Measure("a", task, 12);
  const EarlierResults results = Gather("new", std::span(&task, 1));
  ASSERT_OK_AND_ASSIGN(const auto policy, search::MakePolicy("sketch.random", task, 3));
  policy->Observe(results.of_tasks[0].observations);
  ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(12));
  for (const search::Candidate& candidate : candidates) {
    for (const search::Observation& o : results.of_tasks[0].observations) {
      EXPECT_NE(candidate.hash, o.candidate.hash);
    }
  }
}

search::Task TaskOf(const dag::DagPtr& dag) {
  const auto target = target::ParseTarget("llvm");
  return search::Task(dag, *target, target::DefaultHardware(*target, 2), dag::WorkloadId(*dag));
}

// If it were the same task, its records would stop all trials of the other one early, and count as
// known states of it.
TEST_F(EarlierResultsTest, AnotherComputationOfTheSameKeyIsNotTheSameTask) {
  const auto sum = [](int extent) {
    const auto dag = dag::ParseDag(
        fmt::format("input A: float32[64, 8]\nS[i: 64] = sum(k: {}) A[i, k % 8] * 0.5\n", extent));
    EXPECT_OK(dag.status());
    return TaskOf(*dag);
  };
  const search::Task quick = sum(10), slow = sum(20'000);
  ASSERT_EQ(dag::WorkloadKey(*quick.dag), dag::WorkloadKey(*slow.dag));
  Measure("a", quick, 4);
  const EarlierResults results = Gather("new", std::span(&slow, 1));
  EXPECT_FALSE(results.of_tasks[0].best.has_value());
  EXPECT_THAT(results.of_tasks[0].observations, IsEmpty());
  EXPECT_THAT(results.of_tasks[0].avoid, IsEmpty());
  ASSERT_THAT(results.of_others, SizeIs(4)) << "it teaches like any other task";
  EXPECT_NE(results.of_others[0].task, search::SampleTask(slow, "cpu"));
}

// The cost in an imported line is a hint for the search, and decides nothing.
TEST_F(EarlierResultsTest, ImportedRecordsAreKnownButTheirCostsDecideNothing) {
  const search::Task task = MakeTask("64");
  Measure("a", task, 4);
  ASSERT_OK(store_->AddJob({.id = "import"}));
  store::Record record;
  record.job_id = "import";
  record.workload_key = dag::WorkloadKey(*task.dag);
  record.target = target::PrintTarget(task.target);
  record.steps = "[]";
  record.costs_s = {1e-6};
  ASSERT_OK(store_->AddRecord(record).status());
  record.trial = 1;
  record.costs_s = {1e-15};  // such a cost is no hint at all
  ASSERT_OK(store_->AddRecord(record).status());
  const EarlierResults results = Gather("new", std::span(&task, 1));
  EXPECT_THAT(results.of_tasks[0].observations, SizeIs(5));
  ASSERT_TRUE(results.of_tasks[0].best.has_value());
  EXPECT_EQ(results.of_tasks[0].best->cost_s, 1e-3);
  EXPECT_EQ(results.of_tasks[0].best->record_id, 1);
}

TEST_F(EarlierResultsTest, TargetsAndKeysOfLogsAreTakenForWhatTheyMean) {
  const search::Task task = MakeTask("64", "llvm -mattr=-pku -mcpu=znver4 -num-cores=2");
  ASSERT_OK(store_->AddJob({.id = "import"}));
  store::Record record;
  record.job_id = "import";
  record.workload_key = dag::WorkloadKeys(*task.dag)[1];  // the key in TVM 0.19
  record.steps = "[]";
  record.costs_s = {1e-3};
  const auto add = [&](std::string target, int64_t cores, int64_t layout) {
    record.target = std::move(target);
    record.hardware[0] = cores;
    record.layout_rewrite_option = layout;
    record.timestamp_s = record.trial;
    record.steps = fmt::format(R"([["SP", 2, 0, 64, [{}], 1]])", record.trial + 1);
    EXPECT_OK(store_->AddRecord(record).status());
    ++record.trial;
  };
  add("llvm -keys=cpu -mcpu=znver4", 2, 0);
  add("llvm -keys=cpu -mcpu=znver4 -num-cores=2", 2, 0);
  add("llvm -keys=cpu -mcpu=znver4", 64, 0);
  add("llvm -keys=cpu -mcpu=sapphirerapids", 2, 0);
  add("llvm -keys=cpu -mcpu=znver4", 2, 2);  // the cost of an imported record says nothing
  const EarlierResults results = Gather("new", std::span(&task, 1));
  ASSERT_THAT(results.of_tasks[0].observations, SizeIs(2));
  EXPECT_EQ(results.of_tasks[0].observations[1].record, 2);
}

TEST_F(EarlierResultsTest, LeavesOutTheJobItselfAndOtherTargets) {
  const search::Task task = MakeTask("64"), elsewhere = MakeTask("64", "llvm -num-cores=1");
  Measure("mine", task, 8);
  Measure("b", elsewhere, 8);
  const EarlierResults results = Gather("mine", std::span(&task, 1));
  EXPECT_THAT(results.of_tasks[0].observations, IsEmpty());
  EXPECT_THAT(results.of_others, IsEmpty());
}

TEST_F(EarlierResultsTest, CostsOfAnotherDeviceTrainButAreNotTaken) {
  const search::Task task = MakeTask("64");
  Measure("a", task, 8, "an older cpu");
  const EarlierResults results = Gather("new", std::span(&task, 1));
  EXPECT_THAT(results.of_tasks[0].observations, IsEmpty());
  ASSERT_THAT(results.of_others, SizeIs(8));
  EXPECT_NE(results.of_others[0].task, search::SampleTask(task, "cpu"));
}

TEST_F(EarlierResultsTest, TakesTheNewestOfMany) {
  const search::Task task = MakeTask("64"), other = MakeTask("32");
  Measure("a", other, 20);
  const EarlierResults results = Gather("new", std::span(&task, 1), "cpu", 5);
  ASSERT_THAT(results.of_others, SizeIs(5));
  EXPECT_DOUBLE_EQ(results.of_others[1].cost_s.value(), 1e-3 * 17);
}

TEST_F(EarlierResultsTest, OfManyTheBestAreLearnedFromAndAllAreAvoided) {
  const search::Task task = MakeTask("64"), other = MakeTask("32"), third = MakeTask("16");
  Measure("a", task, 40);
  Measure("b", other, 40);
  Measure("c", third, 6);
  ASSERT_OK_AND_ASSIGN(
      const EarlierResults results,
      GatherEarlierResults(*store_, "new", std::span(&task, 1), "cpu", pool_,
                           {.observed = 10, .latest_records = 1000, .samples = 20}));
  const TaskResults& own = results.of_tasks[0];
  EXPECT_THAT(own.observations, SizeIs(10));
  EXPECT_THAT(own.avoid, SizeIs(30));
  std::set<uint64_t> all(own.avoid.begin(), own.avoid.end());
  int best = 0;
  for (const search::Observation& o : own.observations) {
    all.insert(o.candidate.hash);
    best += o.valid && o.cost_s < 7e-3;  // 1, 2, 3, 5, 6 ms: each fourth one failed
  }
  EXPECT_THAT(all, SizeIs(40));
  EXPECT_EQ(best, 5);
  // The small task leaves the rest of its share to the other task.
  std::map<uint64_t, int> samples;
  for (const costmodel::Sample& sample : results.of_others) ++samples[sample.task];
  EXPECT_EQ(samples[search::SampleTask(third, "cpu")], 6);
  EXPECT_EQ(samples[search::SampleTask(other, "cpu")], 14);
  ASSERT_OK_AND_ASSIGN(const auto policy, search::MakePolicy("sketch.random", task, 3));
  policy->Avoid(own.avoid);
  ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(40));
  for (const search::Candidate& candidate : candidates) {
    EXPECT_EQ(std::count(own.avoid.begin(), own.avoid.end(), candidate.hash), 0);
  }
}

TEST_F(EarlierResultsTest, RecordsThatMakeNoSenseAreLeftOut) {
  const search::Task task = MakeTask("64"), other = MakeTask("32");
  ASSERT_OK(store_->AddJob({.id = "old"}));
  store::Record record;
  record.job_id = "old";
  record.target = target::PrintTarget(task.target);
  record.costs_s = {1};
  const auto add = [&](const search::Task& of, std::string dag, std::string steps) {
    record.workload_id = dag::WorkloadId(*of.dag);
    record.workload_key = dag::WorkloadKey(*of.dag);
    record.dag = std::move(dag);
    record.steps = std::move(steps);
    ASSERT_OK(store_->AddRecord(record).status());
    ++record.trial;
  };
  const std::string text = dag::PrintDag(*other.dag);
  add(task, text, "no steps");
  add(other, text, "no steps");
  add(other, text, R"([["SP", 77, 0, 32, [1], 1]])");  // the stage does not exist
  add(MakeTask("16"), "", "[]");                       // imported
  add(MakeTask("8"), "no dag", "[]");
  // A loop is split into more loops than a stage may have, in records of both tasks.
  std::string lengths = "1";
  for (int i = 1; i < 200'000; ++i) lengths += ", 1";
  const std::string deep = fmt::format(R"([["SP", 2, 0, 64, [{}], 1]])", lengths);
  add(task, dag::PrintDag(*task.dag), deep);
  add(other, text, deep);
  const EarlierResults results = Gather("new", std::span(&task, 1));
  EXPECT_THAT(results.of_tasks[0].observations, IsEmpty());
  EXPECT_THAT(results.of_others, IsEmpty());
}

TEST_F(EarlierResultsTest, ATaskThatAJobHoldsTwiceIsLearnedOnce) {
  const search::Task tasks[] = {MakeTask("64"), MakeTask("64")};
  Measure("a", tasks[0], 8);
  const EarlierResults results = Gather("new", tasks);
  EXPECT_THAT(results.of_tasks[0].observations, SizeIs(8));
  EXPECT_THAT(results.of_tasks[1].observations, IsEmpty());
}

TEST_F(EarlierResultsTest, FewWorkloadsTeachLittleAboutOthers) {
  const search::Task task = MakeTask("64");
  Measure("a", MakeTask("32"), 150);
  Measure("b", MakeTask("16"), 50);
  EXPECT_FALSE(CanRankNewTasks(Gather("new", std::span(&task, 1))));
  Measure("c", MakeTask("128"), 50);
  EXPECT_FALSE(CanRankNewTasks(Gather("new", std::span(&task, 1))));
  Measure("d", MakeTask("96"), 50);
  EXPECT_TRUE(CanRankNewTasks(Gather("new", std::span(&task, 1))));
}

TEST_F(EarlierResultsTest, TrainsAModel) {
  const search::Task task = MakeTask("64"), other = MakeTask("32");
  Measure("a", other, 60);
  ASSERT_OK_AND_ASSIGN(const auto model,
                       costmodel::MakeCostModel("xgb", {.seed = 1, .threads = 1}));
  ASSERT_OK(model->Update(Gather("new", std::span(&task, 1)).of_others));
  EXPECT_TRUE(model->trained());
}

}  // namespace
}  // namespace kiln::training
