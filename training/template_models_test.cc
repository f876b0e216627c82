#include "training/template_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"
#include "search/policies/policy.h"
#include "search/templates/template.h"
#include "store/memory_store.h"

namespace kiln::training {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNull;

constexpr std::string_view kTiles =
    "template tiles for cpu\nstage C = reduction()\ni, j = axes(C)\n"
    "knob tile_i = split(i, outputs=2)\nknob tile_j = split(j, outputs=3)\n"
    "a, b = split(i, tile_i)\nc, d, e = split(j, tile_j)\n";

class TemplateModelsTest : public testing::Test {
 protected:
  TemplateModelsTest() {
    Give(std::string(kTiles));
    Set("template_curve_features", 1);
    Set("template_least_history", 30);
  }

  void Set(const std::string& parameter, double value) { overrides_[parameter] = value; }

  void Give(const std::string& schedule_template) {
    ASSERT_OK_AND_ASSIGN(given_, search::TemplateOfText(schedule_template));
  }

  static search::Task MakeTask(const std::string& size, std::string_view target = "llvm") {
    const auto parsed = target::ParseTarget(target);
    const auto dag = dag::BuildOp("matmul", size + "," + size + "," + size);
    KILN_CHECK(parsed.ok() && dag.ok(), "no task of {} for {}", size, target);
    return search::Task(*dag, *parsed, target::DefaultHardware(*parsed, 2), dag::WorkloadId(**dag));
  }

  // Adds records of random points of the template. Every fourth one failed.
  void Measure(const std::string& job, const search::Task& task, int count,
               const std::string& device = "cpu") {
    store::TaskRow row{.job_id = job, .description = "matmul " + job};
    ASSERT_OK(store_->AddJob({.id = job}, {&row, 1}));
    ASSERT_OK_AND_ASSIGN(const search::TemplatePtr tiles, search::TextTemplate::Parse(kTiles));
    ASSERT_OK_AND_ASSIGN(const auto policy, search::MakePolicy("template.random", task, 3,
                                                               {.schedule_template = tiles}));
    ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(count));
    ASSERT_EQ(std::ssize(candidates), count);
    for (int i = 0; i < count; ++i) {
      store::Record record;
      record.job_id = job;
      record.trial = static_cast<uint32_t>(i);
      record.workload_id = dag::WorkloadId(*task.dag);
      record.workload_key = dag::WorkloadKey(*task.dag);
      record.dag = dag::PrintDag(*task.dag);
      record.target = target::PrintTarget(task.target);
      record.steps = search::PrintCandidate(candidates[static_cast<size_t>(i)]);
      record.origin = candidates[static_cast<size_t>(i)].origin;
      record.device = device;
      if (i % 4 == 3) {
        record.error = 2;
      } else {
        record.costs_s = {1e-3 * (i + 1)};
      }
      ASSERT_OK(store_->AddRecord(record).status());
    }
  }

  TemplateModels Gather(std::string_view job, std::span<const search::Task> tasks) {
    const auto parameters = search::MakeParameters(overrides_);
    EXPECT_OK(parameters.status());
    auto found = LearnTemplateModels(*store_, job, given_, *parameters, tasks, pool_);
    EXPECT_OK(found.status());
    return *std::move(found);
  }

  search::TemplatePtr given_;
  std::map<std::string, double> overrides_;
  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  ThreadPool pool_{2};
};

TEST_F(TemplateModelsTest, LearnsFromOtherComputationsAndSaysSo) {
  Measure("small", MakeTask("32"), 24);
  Measure("large", MakeTask("64"), 40);
  const search::Task tasks[] = {MakeTask("48"), MakeTask("16")};
  const TemplateModels found = Gather("new", tasks);
  ASSERT_EQ(found.of_tasks.size(), 2u);
  EXPECT_NE(found.of_tasks[0], nullptr);
  EXPECT_EQ(found.of_tasks[0], found.of_tasks[1]);
  EXPECT_THAT(found.notices,
              ElementsAre("template tiles: the search begins with a model of 64 earlier results: "
                          "matmul large (40), matmul small (24)"));
}

TEST_F(TemplateModelsTest, TheJobItselfOthersTargetsAndOtherTemplatesTeachNothing) {
  const search::Task task = MakeTask("48");
  Measure("mine", MakeTask("32"), 40);
  Measure("elsewhere", MakeTask("64", "llvm -num-cores=1"), 40);
  const TemplateModels none = Gather("mine", {&task, 1});
  EXPECT_THAT(none.of_tasks, ElementsAre(IsNull()));
  EXPECT_THAT(none.notices, IsEmpty());

  std::string other(kTiles);
  other.replace(other.find("tiles"), 5, "other");
  Give(other);
  EXPECT_THAT(Gather("new", {&task, 1}).notices, IsEmpty());
  // The changed template has the same name, but makes other schedules from the same index.
  std::string changed(kTiles);
  changed += "unroll(e)\n";
  Give(changed);
  const TemplateModels apart = Gather("new", {&task, 1});
  EXPECT_THAT(apart.of_tasks, ElementsAre(IsNull()));
  EXPECT_THAT(apart.notices, IsEmpty());
}

TEST_F(TemplateModelsTest, WhatIsNotLearnedFromIsSaid) {
  const search::Task task = MakeTask("48");
  Measure("small", MakeTask("32"), 12);
  const TemplateModels few = Gather("new", {&task, 1});
  EXPECT_THAT(few.of_tasks, ElementsAre(IsNull()));
  EXPECT_THAT(few.notices,
              ElementsAre(HasSubstr("12 earlier results are too few for a model to begin with "
                                    "(template_least_history is 30): matmul small (12)")));
  Set("template_curve_features", 0);
  EXPECT_THAT(Gather("new", {&task, 1}).notices,
              ElementsAre(HasSubstr("12 earlier results of other computations are not learned "
                                    "from, as knob values alone say nothing")));
  const search::Task same = MakeTask("32");
  EXPECT_THAT(Gather("new", {&same, 1}).notices, IsEmpty()) << "those are its own";
  Set("template_history", 0);
  EXPECT_THAT(Gather("new", {&task, 1}).notices, IsEmpty());
}

TEST_F(TemplateModelsTest, DevicesAreComparedWithThemselvesAlone) {
  const search::Task other = MakeTask("64"), task = MakeTask("48");
  Measure("here", other, 20, "cpu a");
  Measure("there", other, 20, "cpu b");
  const TemplateModels found = Gather("new", {&task, 1});
  EXPECT_NE(found.of_tasks[0], nullptr);
  EXPECT_THAT(found.notices, ElementsAre(HasSubstr("of 40 earlier results: matmul here (40)")));
}

}  // namespace
}  // namespace kiln::training
