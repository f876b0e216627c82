// Marks of records that were measured while a device was slower than usual.
#include "store/store_testing.h"

namespace kiln::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kReason[] = "the canary took 1.31 ms; 0.98 to 1.02 ms are usual";
// Time of a test record's trial 0; each further trial is a second later.
constexpr int64_t kFirst_s = 1700000000;

int64_t Mark(Store& store, SlowSpan span) {
  if (span.reason.empty()) span.reason = kReason;
  const auto marked = store.MarkRecords(span);
  EXPECT_OK(marked.status());
  return marked.value_or(-1);
}

// Returns the trials that have a mark.
std::vector<uint32_t> Marked(Store& store) {
  std::vector<uint32_t> trials;
  const auto records = store.RecordsOfJob("j", 0);
  EXPECT_OK(records.status());
  for (const Record& record : records.value_or(std::vector<Record>())) {
    if (!record.mark.empty()) trials.push_back(record.trial);
  }
  return trials;
}

// Adds trials 0 to 4 of a job j, and returns their ids.
std::vector<int64_t> AddTrials(Store& store) {
  JobRow job;
  job.id = "j";
  EXPECT_OK(store.AddJob(job));
  std::vector<Record> records;
  for (uint32_t trial = 0; trial < 5; ++trial) records.push_back(TestRecord("j", trial));
  return store.AddRecords(records).value_or(std::vector<int64_t>());
}

TEST_P(StoreTest, MarksAreOfTheRunnerAndTheSpan) {
  const std::vector<int64_t> ids = AddTrials(*store_);
  ASSERT_EQ(ids.size(), 5u);
  EXPECT_THAT(Marked(*store_), IsEmpty());
  EXPECT_EQ(Mark(*store_, {.runner = "runner-2", .from_s = 0}), 0);
  EXPECT_EQ(Mark(*store_, {.runner = "", .from_s = 0}), 0);
  EXPECT_EQ(Mark(*store_, {.runner = "runner-1", .from_s = kFirst_s + 1, .to_s = kFirst_s + 2}), 2);
  EXPECT_THAT(Marked(*store_), ElementsAre(1, 2));
  ASSERT_OK_AND_ASSIGN(const Record record, store_->GetRecord(ids[1]));
  EXPECT_EQ(record.mark, kReason);
  // Nothing else of the record has changed.
  Record expected = TestRecord("j", 1);
  expected.mark = kReason;
  EXPECT_EQ(Describe(record), Describe(expected));
}

TEST_P(StoreTest, MarksCanBeSetAgainWithoutEffect) {
  const std::vector<int64_t> ids = AddTrials(*store_);
  ASSERT_EQ(ids.size(), 5u);
  EXPECT_EQ(Mark(*store_, {.runner = "runner-1", .from_s = kFirst_s + 3}), 2);
  EXPECT_EQ(Mark(*store_, {.runner = "runner-1", .from_s = kFirst_s + 3}), 0);
  // The span goes on, and the first reason stays.
  EXPECT_EQ(Mark(*store_, {.runner = "runner-1", .from_s = kFirst_s, .reason = "other"}), 3);
  ASSERT_OK_AND_ASSIGN(const Record record, store_->GetRecord(ids[4]));
  EXPECT_EQ(record.mark, kReason);
  Add(TestRecord("j", 5));
  EXPECT_EQ(Mark(*store_, {.runner = "runner-1", .from_s = kFirst_s + 3}), 1) << "it came late";
}

TEST_P(StoreTest, MarksDoNotChangeWhichRecordIsBest) {
  const std::vector<int64_t> ids = AddTrials(*store_);
  ASSERT_EQ(ids.size(), 5u);
  const int64_t best = Add(TestRecord("j", 5, 1e-6));
  EXPECT_EQ(Mark(*store_, {.runner = "runner-1", .from_s = kFirst_s + 5}), 1);
  EXPECT_EQ(Best(kTest, ""), 5);
  ASSERT_OK_AND_ASSIGN(const Record record, store_->GetRecord(best));
  EXPECT_EQ(record.mark, kReason);
}

// A cost of re-measurements is not a cost of that time.
TEST_P(StoreTest, MarksAreNotOfRecordsThatWereMeasuredAgain) {
  const std::vector<int64_t> ids = AddTrials(*store_);
  ASSERT_EQ(ids.size(), 5u);
  Remeasurement remeasured = {.id = ids[0], .costs_s = {5e-3, 6e-3}, .readings = 4};
  ASSERT_OK(store_->SetRemeasurements({&remeasured, 1}));
  EXPECT_EQ(Mark(*store_, {.runner = "runner-1", .from_s = 0}), 4);
  EXPECT_THAT(Marked(*store_), ElementsAre(1, 2, 3, 4));
  remeasured.id = ids[2];
  ASSERT_OK(store_->SetRemeasurements({&remeasured, 1}));
  EXPECT_THAT(Marked(*store_), ElementsAre(1, 3, 4));
}

}  // namespace
}  // namespace kiln::store
