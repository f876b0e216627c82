#include "scheduler/remeasure/finalist_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "scheduler/values/job_testing.h"
#include "search/policies/first_candidates.h"
#include "store/memory_store.h"

namespace kiln::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kJobId[] = "job";

class FinalistSelectionTest : public testing::Test {
 protected:
  // Begins a job of one or two tasks. The second one is an alternative of the first.
  void Begin(int tasks, int finalists = 2) {
    v1::JobSpec spec = TestJob(100);
    spec.mutable_options()->set_finalists(finalists);
    if (tasks == 2) *spec.add_tasks() = TestAlternative(0);
    ASSERT_OK_AND_ASSIGN(job_, CheckJobSpec(spec));
    std::vector<store::TaskRow> rows(job_.tasks.size());
    for (size_t i = 0; i < rows.size(); ++i) rows[i].index = static_cast<uint32_t>(i);
    ASSERT_OK(store_->AddJob({.id = kJobId}, rows));
    selection_ = std::make_unique<FinalistSelection>(job_, kJobId, *store_);
  }

  int64_t Add(double cost_s, std::string steps = {}, uint32_t task = 0, std::string origin = {}) {
    store::Record record;
    record.origin = std::move(origin);
    record.job_id = kJobId;
    record.task_index = task;
    record.trial = trials_++;
    record.target = "null";
    record.steps = steps.empty() ? fmt::format("[{}]", record.trial) : std::move(steps);
    record.costs_s = {cost_s};
    const auto id = store_->AddRecord(record);
    KILN_CHECK(id.ok(), "{}", Message(id.status()));
    return *id;
  }

  // Adds trials that are far too slow, because a task with few trials has few finalists.
  void AddSlow(int count) {
    for (int i = 0; i < count; ++i) Add(1);
  }

  void Race(int64_t id, double cost_s) {
    store::Remeasurement remeasured;
    remeasured.id = id;
    remeasured.costs_s = std::vector<double>(10, cost_s);
    remeasured.readings = 10;
    ASSERT_OK(store_->SetRemeasurements({&remeasured, 1}));
  }

  // Returns the records of the only list, or nothing if there is no list.
  std::vector<int64_t> Next() {
    const auto lists = selection_->Next();
    EXPECT_OK(lists);
    std::vector<int64_t> ids;
    if (!lists.ok() || lists->empty()) return ids;
    EXPECT_THAT(*lists, SizeIs(1));
    for (const Finalist& entry : lists->front().entries) ids.push_back(entry.record_id);
    return ids;
  }

  CheckedJob job_;
  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  std::unique_ptr<FinalistSelection> selection_;
  uint32_t trials_ = 0;
};

TEST_F(FinalistSelectionTest, TheFastestAreInTheFinalRace) {
  Begin(1);
  const int64_t third = Add(1.2e-3), first = Add(1e-3), second = Add(1.1e-3);
  (void)third;
  AddSlow(200);
  EXPECT_THAT(Next(), ElementsAre(first, second));
}

TEST_F(FinalistSelectionTest, NobodyWhereNoneAreAskedForOrNoneIsRight) {
  Begin(1, /*finalists=*/-1);
  Add(1e-3);
  EXPECT_THAT(Next(), IsEmpty());
}

TEST_F(FinalistSelectionTest, TheUnscheduledLoopsAreBesideThemUnlessTheyAreMuchSlower) {
  Begin(1);
  const int64_t first = Add(1e-3), second = Add(1.01e-3);
  const int64_t unscheduled = Add(1.2e-3, "[]");
  AddSlow(200);
  EXPECT_THAT(Next(), ElementsAre(first, second, unscheduled));
  Add(0.5e-3);
  selection_ = std::make_unique<FinalistSelection>(job_, kJobId, *store_);
  EXPECT_THAT(Next(), SizeIs(1)) << "all others are twice as slow by now";
}

TEST_F(FinalistSelectionTest, TheUnscheduledLoopsAreThereUpToTwiceTheBest) {
  Begin(1);
  const int64_t first = Add(1e-3), second = Add(1.01e-3);
  const int64_t at_twice = Add(2e-3, "[]");
  Add(2.1e-3, "[]");
  AddSlow(200);
  EXPECT_THAT(Next(), ElementsAre(first, second, at_twice));
}

// A later heuristic schedule is a guess like others.
TEST_F(FinalistSelectionTest, TheHeuristicScheduleIsAlwaysThere) {
  Begin(1);
  const std::string by_rule = std::string(search::kHeuristicOrigin) + "sketch 1, by rule";
  const int64_t heuristic = Add(7e-3, {}, 0, by_rule);
  Add(7e-3, {}, 0, by_rule);
  const int64_t first = Add(1e-3), second = Add(1.01e-3);
  const int64_t near = Add(1.2e-3, {}, 0, by_rule);
  AddSlow(200);
  EXPECT_THAT(Next(), ElementsAre(first, second, heuristic, near));
  Race(first, 1e-3);
  Race(second, 1.01e-3);
  Race(heuristic, 7e-3);
  Race(near, 1.2e-3);
  EXPECT_THAT(Next(), IsEmpty()) << "and it is there once";
}

TEST_F(FinalistSelectionTest, OfEqualCostsTheSmallerIdGoesFirst) {
  Begin(1);
  trials_ = 50;
  const int64_t late = Add(1e-3);
  trials_ = 10;
  const int64_t early = Add(1e-3);
  Add(1e-3);
  trials_ = 100;
  AddSlow(200);
  ASSERT_LT(late, early);
  EXPECT_THAT(Next(), ElementsAre(late, early));
}

TEST_F(FinalistSelectionTest, AfterARaceTheWinnerMeetsThoseWithALuckyReading) {
  Begin(1);
  const int64_t first = Add(1e-3), second = Add(1.05e-3), lucky = Add(1.1e-3);
  AddSlow(200);
  ASSERT_THAT(Next(), ElementsAre(first, second));
  Race(first, 1.3e-3);
  Race(second, 1.2e-3);
  EXPECT_THAT(Next(), ElementsAre(lucky, second)) << "it now seems faster than the winner";
  Race(lucky, 1.25e-3);
  EXPECT_THAT(Next(), IsEmpty()) << "the winner has no rival that was not measured";
}

TEST_F(FinalistSelectionTest, WellMeasuredFinalistsAreNotMeasuredAgain) {
  Begin(1);
  const int64_t first = Add(1e-3), second = Add(1.05e-3);
  AddSlow(200);
  Race(first, 1e-3);
  Race(second, 1.05e-3);
  EXPECT_THAT(Next(), IsEmpty()) << "as after a restart";
}

TEST_F(FinalistSelectionTest, AnAlternativeThatIsMuchSlowerHasNoFinalRace) {
  Begin(2);
  const int64_t first = Add(1e-3), second = Add(1.1e-3);
  Add(1.3e-3, {}, 1);
  AddSlow(200);
  EXPECT_THAT(Next(), ElementsAre(first, second));
}

}  // namespace
}  // namespace kiln::scheduler
