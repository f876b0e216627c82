#include "store/trial_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/status_testing.h"
#include "store/folder_testing.h"
#include "store/record_testing.h"
#include "store/schema.h"
#include "store/sqlite.h"
#include "store/sqlite_store.h"

namespace kiln::store {
namespace {

TEST(TrialTimesTest, CountsFromASecondOn) {
  TrialTimes times;
  EXPECT_EQ(times.CountSince("j", 0), std::nullopt);
  times.Add("j", 5);
  EXPECT_EQ(times.CountSince("j", 0), std::nullopt) << "the database has trials of it";
  times.Begin("j", {{.at_s = 10, .trials = 2}, {.at_s = 12, .trials = 3}});
  times.Add("j", 12);
  times.Add("j", 15);
  // Results come out of order.
  times.Add("j", 11);
  times.Add("j", 10);
  times.Add("j", -3);
  for (const auto& [since_s, count] : std::map<int64_t, uint64_t>{
           {-4, 10}, {-3, 10}, {-2, 9}, {10, 9}, {11, 6}, {12, 5}, {13, 1}, {15, 1}, {16, 0}}) {
    EXPECT_EQ(times.CountSince("j", since_s), count) << since_s;
  }
  times.Begin("empty", {});
  EXPECT_EQ(times.CountSince("empty", 0), 0u);
  times.ForgetAll();
  EXPECT_EQ(times.CountSince("j", 0), std::nullopt);
}

TEST(TrialTimesTest, TooManySecondsAreForgotten) {
  TrialTimes times;
  std::vector<TrialTimes::Second> most;
  for (size_t i = 0; i < TrialTimes::kMostSeconds; ++i) {
    most.push_back({.at_s = static_cast<int64_t>(i), .trials = 1});
  }
  times.Begin("a", {{.at_s = 1, .trials = 1}});
  times.Begin("b", most);
  EXPECT_EQ(times.CountSince("a", 0), std::nullopt);
  EXPECT_EQ(times.CountSince("b", 0), TrialTimes::kMostSeconds);
  times.Begin("b", most);
  EXPECT_EQ(times.CountSince("b", 1), TrialTimes::kMostSeconds - 1);
  times.Add("b", 3);
  EXPECT_EQ(times.CountSince("b", 0), TrialTimes::kMostSeconds + 1);
  times.Add("b", -1);
  EXPECT_EQ(times.CountSince("b", 0), std::nullopt);
}

// Another connection changes what the records say of their times and sizes. A store that read them
// again would see it.
TEST(TrialTimesTest, ASecondSumOfAUserReadsNoRecords) {
  const TestFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto store, OpenSqliteStore(folder.File("kiln.db")));
  ASSERT_OK(store->AddJob({.id = "j", .user = "ann", .trials = 10, .state = JobState::kRunning}));
  Record record = TestRecord("j", 0);
  record.timestamp_s = 100;
  ASSERT_OK(store->AddRecord(record).status());
  ASSERT_OK_AND_ASSIGN(const UserTotals first, store->TotalsOfUser("ann", 100, true));
  EXPECT_EQ(first.trials_since, 1u);
  EXPECT_EQ(first.trials_to_come, 9u);
  ASSERT_OK_AND_ASSIGN(
      const auto other,
      sqlite::Database::Open(folder.File("kiln.db"), kApplicationId, sqlite::OpenOptions{}));
  ASSERT_OK(other->Execute("UPDATE records SET timestamp_s = 1, message = 'longer than before'"));
  record.trial = 1;
  record.timestamp_s = 101;
  ASSERT_OK(store->AddRecord(record).status());
  ASSERT_OK_AND_ASSIGN(const UserTotals second, store->TotalsOfUser("ann", 100, true));
  EXPECT_EQ(second.trials_since, 2u);
  EXPECT_EQ(second.trials_to_come, 8u);
  EXPECT_EQ(second.stored_bytes, 2 * first.stored_bytes);
  ASSERT_OK_AND_ASSIGN(const UserTotals later, store->TotalsOfUser("ann", 101, false));
  EXPECT_EQ(later.trials_since, 1u);
}

}  // namespace
}  // namespace kiln::store
