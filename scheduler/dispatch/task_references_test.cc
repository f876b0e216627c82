#include "scheduler/dispatch/task_references.h"

#include "base/status_testing.h"
#include "scheduler/values/job_testing.h"

namespace kiln::scheduler {
namespace {

using SlowReferenceAction = TaskReferences::SlowReferenceAction;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class TaskReferencesTest : public testing::Test {
 protected:
  TaskReferencesTest() : tasks_(2) {
    options_.set_reference_limit_s(2);
    tasks_[0].dag = TestTask().dag();
    tasks_[0].description = "matmul";
    tasks_[1].dag = "no dag, so no sample of it";
  }

  static RunItemPtr ItemOf(int task) {
    auto item = std::make_unique<RunItem>();
    item->task = task;
    return item;
  }

  static v1::Artifact Artifact(const std::string& digest) {
    v1::Artifact artifact;
    artifact.set_digest(digest);
    return artifact;
  }

  v1::TuneOptions options_;
  std::vector<DispatchTask> tasks_;
};

TEST_F(TaskReferencesTest, ACandidateIsComparedWithAnotherBuildersReference) {
  tasks_[0].target = "llvm";
  TaskReferences references(options_, tasks_);
  references.SetBuilt(0, Artifact("r1"), "b1");
  EXPECT_EQ(references.CheckOf(0, "b1")->reference->digest(), "r1") << "there is no other";
  EXPECT_FALSE(references.NeedsOther(0, "b2"));
  EXPECT_TRUE(references.NeedsOther(0, "b1"));
  EXPECT_FALSE(references.NeedsOther(0, "b1")) << "it is asked for";
  references.SetBuilt(0, Artifact("r2"), "b2");
  EXPECT_EQ(references.CheckOf(0, "b1")->reference->digest(), "r2");
  EXPECT_EQ(references.CheckOf(0, "b2")->reference->digest(), "r1");
  EXPECT_EQ(references.CheckOf(0, "b3")->reference->digest(), "r1");
  // A reference that fails is replaced by the other one.
  EXPECT_FALSE(references.NoteFailure(0, Artifact("r1")));
  EXPECT_EQ(references.CheckOf(0, "b2")->reference->digest(), "r2");
}

TEST_F(TaskReferencesTest, BuildersThatAgreeHaveOneReference) {
  tasks_[0].target = "llvm";
  TaskReferences references(options_, tasks_);
  references.SetBuilt(0, Artifact("r1"), "b1");
  references.SetBuilt(0, Artifact("r1"), "b2");
  for (const char* builder : {"b1", "b2"}) {
    EXPECT_EQ(references.CheckOf(0, builder)->reference->digest(), "r1");
    EXPECT_FALSE(references.NeedsOther(0, builder));
  }
}

// The time may depend on the values of an index, so all measurements of the job have the same.
TEST_F(TaskReferencesTest, ARandomIndexKeepsItsValues) {
  const std::string rest = "ids: int32[8]\ninput t: float32[16]\ny[i: 8] = t[ids[i]]\n";
  tasks_.resize(3);
  tasks_[0].dag = "input " + rest;
  tasks_[1].dag = "@range(0, 16) input " + rest;
  tasks_[2].dag = "@range(0, 16, 2) input " + rest;
  for (DispatchTask& task : tasks_) task.target = "llvm";
  TaskReferences references(options_, tasks_);
  for (int task = 0; task < 3; ++task) {
    references.SetBuilt(task, Artifact("r1"), "b1");
    EXPECT_EQ(references.CheckOf(task, "b2")->same_inputs, task < 2) << task;
  }
}

TEST_F(TaskReferencesTest, ASampleHasTheRangesOfTheInputs) {
  tasks_[0].target = "llvm";
  tasks_[0].dag =
      "@range(0.5, 2)\ninput x: float32[64, 512]\ninput w: float32[64, 512]\n"
      "A[t: 64, n: 64] = sum(k: 512) log(x[t, k]) * w[n, k]\n";
  TaskReferences references(options_, tasks_);
  EXPECT_THAT(references.DagOf(0),
              testing::AllOf(HasSubstr("@range(0.5, 2.0)\ninput x"), HasSubstr("float64")));
  references.SetBuilt(0, {}, "b1");
  EXPECT_FALSE(references.CheckOf(0, "b1")->known->empty());
  EXPECT_EQ(references.GiveUp(0), SlowReferenceAction::kBuildSample);
  EXPECT_THAT(references.DagOf(0),
              testing::AllOf(HasSubstr("@range(0.5, 2.0)\ninput x"), HasSubstr("float64")));
}

TEST_F(TaskReferencesTest, AProgramHasTheArgumentsOfTheComputation) {
  tasks_[0].target = "llvm";
  TaskReferences references(options_, tasks_);
  EXPECT_THAT(references.CheckProgram(0, false, {}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("the program has 0 arguments")));
  tasks_[0].target = "null";
  // Programs of this target are never run, so they are not checked.
  EXPECT_OK(TaskReferences(options_, tasks_).CheckProgram(0, false, {}));
}

TEST_F(TaskReferencesTest, IsRequestedOnceAndAwaited) {
  TaskReferences references(options_, tasks_);
  EXPECT_TRUE(references.Request(0));
  EXPECT_FALSE(references.Request(0));
  EXPECT_TRUE(references.Request(1));
  EXPECT_EQ(references.Await(ItemOf(0)), nullptr);
  EXPECT_EQ(references.Await(ItemOf(1)), nullptr);
  EXPECT_FALSE(references.CheckOf(0, "b1").has_value());
  EXPECT_THAT(references.SetBuilt(0, {}, "b1"), SizeIs(1)) << "of this task alone";
  EXPECT_TRUE(references.CheckOf(0, "b1").has_value());
  EXPECT_NE(references.Await(ItemOf(0)), nullptr);
  EXPECT_THAT(references.SetBuilt(0, {}, "b1"), IsEmpty());
}

TEST_F(TaskReferencesTest, OneThatTakesTooLongGivesWayToASampleOnce) {
  TaskReferences references(options_, tasks_);
  references.SetBuilt(0, {}, "b1");
  EXPECT_EQ(references.DagOf(0), tasks_[0].dag);
  EXPECT_EQ(references.GiveUp(0), SlowReferenceAction::kBuildSample);
  EXPECT_EQ(references.GiveUp(0), SlowReferenceAction::kUseSample);
  EXPECT_NE(references.DagOf(0), tasks_[0].dag);
  EXPECT_EQ(references.Await(ItemOf(0)), nullptr) << "the sample's is not built";
  EXPECT_THAT(references.SetBuilt(0, {}, "b1"), SizeIs(1));
  EXPECT_FALSE(references.CheckOf(0, "b1")->samples.empty());
  EXPECT_FALSE(references.CheckOf(0, "b1")->unlimited);
  EXPECT_THAT(references.notices(),
              testing::ElementsAre(HasSubstr("the unscheduled loops take more than 2 s")));
}

TEST_F(TaskReferencesTest, WithoutASampleItIsWaitedFor) {
  TaskReferences references(options_, tasks_);
  references.SetBuilt(1, {}, "b1");
  EXPECT_EQ(references.GiveUp(1), SlowReferenceAction::kWait);
  EXPECT_EQ(references.GiveUp(1), SlowReferenceAction::kWait);
  EXPECT_TRUE(references.CheckOf(1, "b1")->unlimited);
  EXPECT_THAT(references.notices(), testing::ElementsAre(HasSubstr("they are waited for")));
}

TEST_F(TaskReferencesTest, FailuresCountUntilItHasRun) {
  TaskReferences references(options_, tasks_);
  EXPECT_FALSE(references.NoteFailure(0, {}));
  EXPECT_FALSE(references.NoteFailure(0, {}));
  EXPECT_FALSE(references.NoteFailure(1, {})) << "of another task";
  EXPECT_TRUE(references.NoteFailure(0, {}));
  references.NoteResult(1, {}, std::nullopt);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(references.NoteFailure(1, {}));
}

TEST_F(TaskReferencesTest, KnowsTheBestCostAndTheReferencesFirst) {
  tasks_[0].best_cost_s = 3e-3;
  TaskReferences references(options_, tasks_);
  references.SetBuilt(0, {}, "b1");
  store::Record record;
  record.costs_s = {4e-3};
  references.NoteResult(0, record, std::nullopt);
  EXPECT_EQ(references.CheckOf(0, "b1")->best_cost_s, 3e-3);
  EXPECT_FALSE(references.CheckOf(0, "b1")->reference_cost_s.has_value());
  record.costs_s = {1e-3};
  record.stopped_early = true;
  references.NoteResult(0, record, 5e-3);
  EXPECT_EQ(references.CheckOf(0, "b1")->best_cost_s, 3e-3) << "one reading of a stopped trial";
  record.stopped_early = false;
  references.NoteResult(0, record, 6e-3);
  EXPECT_EQ(references.CheckOf(0, "b1")->best_cost_s, 1e-3);
  EXPECT_EQ(references.CheckOf(0, "b1")->reference_cost_s, 5e-3);
}

}  // namespace
}  // namespace kiln::scheduler
