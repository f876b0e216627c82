#include "store/record_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/status_testing.h"
#include "store/folder_testing.h"
#include "store/memory_store.h"
#include "store/merge.h"
#include "store/record_testing.h"
#include "store/sqlite_store.h"

namespace kiln::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Rival Finalist(int64_t id, double cost_s, double confidence_s) {
  return {.rank = {.measured_as = "graph/warm/free", .cost_s = cost_s, .id = id},
          .confidence_s = confidence_s,
          .device = "NVIDIA H200"};
}

TEST(RecordOrder, TheSmallestIdOfThoseThatDoNotDifferIsChosen) {
  const std::vector<Rival> rivals = {Finalist(7, 1.000, 0.02), Finalist(3, 1.025, 0.02),
                                     Finalist(5, 1.030, 0.02), Finalist(2, 1.028, 0.001),
                                     Finalist(1, 0.990, 0)};
  // The one without an interval is the fastest, so nothing is known of a difference.
  EXPECT_EQ(ChooseRecord(rivals).id, 1);
  EXPECT_THAT(ChooseRecord(rivals).equal_ids, IsEmpty());
  const std::span of_finalists(rivals.data(), 4);
  // Two intervals of 0.02 make one of 0.0283 of their difference, and 0.02 with 0.001 of 0.02002.
  EXPECT_EQ(ChooseRecord(of_finalists).id, 3);
  EXPECT_THAT(ChooseRecord(of_finalists).equal_ids, ElementsAre(7));
}

TEST(RecordOrder, TheChoiceDoesNotDependOnTheOrder) {
  std::vector<Rival> rivals = {Finalist(6, 1.00, 0.02), Finalist(4, 1.02, 0.03),
                               Finalist(9, 1.01, 0.01), Finalist(2, 1.05, 0.01),
                               Finalist(5, 1.00, 0.02), Finalist(8, 1.03, 0.2)};
  std::ranges::sort(rivals, {}, [](const Rival& rival) { return rival.rank.id; });
  int orders = 0;
  do {
    const ChosenRecord chosen = ChooseRecord(rivals);
    ASSERT_EQ(chosen.id, 4);
    ASSERT_THAT(chosen.equal_ids, ElementsAre(5, 6, 8, 9));
    ++orders;
  } while (std::next_permutation(rivals.begin(), rivals.end(), [](const Rival& a, const Rival& b) {
    return a.rank.id < b.rank.id;
  }));
  EXPECT_EQ(orders, 720);
}

TEST(RecordOrder, OnlyFinalistsOfOneWayAndModelAreEqual) {
  const Rival one = Finalist(1, 1, 0.1);
  EXPECT_TRUE(AreEqual(one, Finalist(2, 1.1, 0.1)));
  EXPECT_TRUE(AreEqual(Finalist(2, 1.1, 0.1), one));
  EXPECT_FALSE(AreEqual(one, Finalist(2, 1.2, 0.1)));
  EXPECT_FALSE(AreEqual(one, Finalist(2, 1, 0))) << "no finalist";
  Rival other = Finalist(2, 1, 0.1);
  other.rank.measured_as = "stream/warm/free";
  EXPECT_FALSE(AreEqual(one, other));
  other = Finalist(2, 1, 0.1);
  other.device = "NVIDIA L4";
  EXPECT_FALSE(AreEqual(one, other));
  other = Finalist(2, 1, 0.1);
  other.rank.failed = true;
  EXPECT_FALSE(AreEqual(one, other));
  other.rank.failed = false;
  other.rank.stopped_early = true;
  EXPECT_FALSE(AreEqual(one, other));
}

// ---- stores ---------------------------------------------------------------------------------

struct Measured {
  double cost_s;
  double confidence_s;  // 0: no finalist
};

// Adds the trials in the given order, each with its number as its steps.
void AddTrials(Store& store, const std::vector<std::pair<uint32_t, Measured>>& trials) {
  JobRow job;
  job.id = "j";
  job.state = JobState::kSucceeded;
  job.created_ms = 1;
  TaskRow task;
  task.workload_id = kTestId;
  task.workload_key = kTestKey;
  task.dag = TestRecord("j", 0).dag;
  task.target = kTestTarget;
  ASSERT_OK(store.AddJob(job, {&task, 1}));
  for (const auto& [trial, measured] : trials) {
    ASSERT_OK_AND_ASSIGN(const int64_t id, store.AddRecord(TestRecord("j", trial, 9e-3)));
    if (measured.confidence_s == 0) continue;
    const Remeasurement again = {
        .id = id, .costs_s = {measured.cost_s}, .confidence_s = measured.confidence_s};
    ASSERT_OK(store.SetRemeasurements({&again, 1}));
  }
}

std::vector<std::unique_ptr<Store>> BothStores(const TestFolder& folder, const std::string& name) {
  std::vector<std::unique_ptr<Store>> stores;
  stores.push_back(NewMemoryStore());
  auto sqlite = OpenSqliteStore(folder.File(name));
  KILN_CHECK(sqlite.ok(), "{}", sqlite.status().ToString());
  stores.push_back(*std::move(sqlite));
  return stores;
}

TEST(RecordOrder, EveryQueryOfAStoreChoosesTheSame) {
  const TestFolder folder;
  const std::vector<std::pair<uint32_t, Measured>> trials = {{0, {1.2e-3, 1e-5}},
                                                             {1, {1.01e-3, 1e-5}},
                                                             {2, {1.00e-3, 1e-5}},
                                                             {3, {1.014e-3, 1e-5}},
                                                             {4, {0, 0}}};
  for (const auto& store : BothStores(folder, "kiln.db")) {
    AddTrials(*store, trials);
    ASSERT_OK_AND_ASSIGN(const auto of_job, store->BestOfJob("j", 0));
    ASSERT_TRUE(of_job.has_value());
    ASSERT_OK_AND_ASSIGN(const auto of_workload, store->BestRecords({.id = kTestId}, ""));
    ASSERT_EQ(of_workload.size(), 1);
    for (const Record& best : {*of_job, of_workload[0]}) {
      EXPECT_EQ(best.trial, 1u);
      EXPECT_DOUBLE_EQ(Cost(best), 1.01e-3) << "its own cost";
      ASSERT_OK_AND_ASSIGN(const auto records, store->RecordsOfJob("j", 0));
      EXPECT_THAT(best.equal_ids, ElementsAre(records[2].id, records[3].id));
    }
  }
}

TEST(RecordOrder, AMergedDatabaseChoosesTheSame) {
  const TestFolder folder;
  const std::vector<std::pair<uint32_t, Measured>> trials = {
      {5, {1.01e-3, 1e-5}}, {1, {1.00e-3, 1e-5}}, {3, {1.005e-3, 1e-5}}};
  const auto stores = BothStores(folder, "a.db");
  AddTrials(*stores[1], trials);
  ASSERT_OK_AND_ASSIGN(const auto here, stores[1]->BestOfJob("j", 0));
  const std::unique_ptr<Store> there = NewMemoryStore();
  ASSERT_OK(MergeStore(*stores[1], *there, 5).status());
  ASSERT_OK_AND_ASSIGN(const auto best, there->BestOfJob("j", 0));
  EXPECT_EQ(here->trial, 5u);
  EXPECT_EQ(best->trial, here->trial);
  EXPECT_EQ(best->equal_ids.size(), 2);
}

}  // namespace
}  // namespace kiln::store
