// The conformance suite, records: what every Store keeps of them, and what it refuses.
#include <atomic>
#include <cmath>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status_testing.h"
#include "store/record_testing.h"
#include "store/store_testing.h"

namespace kiln::store {
namespace {

using testing::_;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST_P(StoreTest, RecordKeepsEveryFieldToTheLastBit) {
  AddJob("j");
  Record record = TestRecord("j", 4000000000u);
  record.id = 77;
  record.task_index = 3;
  record.costs_s = {1.0 / 3.0, 4.9406564584124654e-324, 1.7976931348623157e308, 1e-5};
  record.message = std::string("line 1\nline \0 2 'quoted' \xc3\xbc", 28);
  record.timestamp_s = -1;
  record.stopped_early = true;
  record.max_error = std::nan("");
  record.build_s = INFINITY;
  record.run_s = -0.1;
  record.flop_count = 0.1;
  record.origin = "sketch 1, tile sizes of 'C'";
  record.score = -INFINITY;
  record.remeasured_costs_s = {1.0 / 7.0, 2e-5};
  record.confidence_s = 1e-7;
  record.remeasurements = 4'000'000'000;
  record.remeasured_run_s = 0.1;
  record.remeasured_device = "GPU-1";
  record.unchecked = "output y of the reference is 0 in all 64 elements";
  record.hardware = {INT64_MIN, INT64_MAX, 0, 1, 2, 3, 4, 5};
  const int64_t id = Add(record);
  ASSERT_OK_AND_ASSIGN(const Record found, store_->GetRecord(id));
  EXPECT_EQ(found.id, id);
  EXPECT_EQ(Describe(found), Describe(record));
  const int64_t failed = Add(FailedRecord("j", 0, 8));
  ASSERT_OK_AND_ASSIGN(const Record found_failed, store_->GetRecord(failed));
  EXPECT_EQ(Describe(found_failed), Describe(FailedRecord("j", 0, 8)));
}

TEST_P(StoreTest, ASecondRecordOfATrialIsRefused) {
  AddJob("j");
  AddJob("k");
  Add(TestRecord("j", 5, 1));
  EXPECT_THAT(store_->AddRecord(TestRecord("j", 5, 2)),
              StatusIs(StatusCode::kAlreadyExists, "job j has a record of trial 5 already"));
  ASSERT_OK_AND_ASSIGN(const int64_t first, store_->AddRecord(TestRecord("j", 5, 1)));
  ASSERT_OK_AND_ASSIGN(const int64_t again, store_->AddRecord(TestRecord("j", 5, 1)));
  EXPECT_EQ(again, first) << "the same one, delivered again";
  Add(TestRecord("k", 5, 3));
  ASSERT_OK_AND_ASSIGN(const std::vector<Record> records, store_->RecordsOfJob("j", 0));
  ASSERT_EQ(records.size(), 1);
  EXPECT_EQ(records[0].costs_s, std::vector<double>{1});
}

TEST_P(StoreTest, ABatchThatIsRepeatedIsThereOnce) {
  AddJob("j");
  const TaskRow task = {.index = 0, .workload_key = kTestKey, .target = "t"};
  ASSERT_OK(store_->AddTasks("j", {&task, 1}));
  const std::vector<Record> batch = {TestRecord("j", 0), TestRecord("j", 1)};
  const std::vector<ReferenceCost> costs = {{"j", 0, 5e-3}};
  ASSERT_OK_AND_ASSIGN(const auto first, store_->AddRecords(batch, costs));
  ASSERT_OK_AND_ASSIGN(const auto second, store_->AddRecords(batch, costs));
  EXPECT_EQ(first, second);
  EXPECT_EQ(Trials(store_->RecordsOfJob("j", 0)), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(store_->TasksOfJob("j")->at(0).reference_cost_s, 5e-3);
}

TEST_P(StoreTest, ABatchWithACostOfNoTaskChangesNothing) {
  AddJob("j");
  const std::vector<Record> batch = {TestRecord("j", 0)};
  EXPECT_THAT(store_->AddRecords(batch, std::vector<ReferenceCost>{{"j", 7, 5e-3}}),
              StatusIs(StatusCode::kNotFound, "no task 7 in job j"));
  EXPECT_THAT(Trials(store_->RecordsOfJob("j", 0)), IsEmpty());
}

TEST_P(StoreTest, AnImportAddsWhatIsNew) {
  AddJob("import");
  std::vector<Record> batch = {TestRecord("", 3), TestRecord("", 9), TestRecord("", 3)};
  ASSERT_OK_AND_ASSIGN(const int64_t first, store_->ImportRecords("import", batch));
  EXPECT_EQ(first, 2);
  batch.push_back(TestRecord("", 4));
  ASSERT_OK_AND_ASSIGN(const int64_t second, store_->ImportRecords("import", batch));
  EXPECT_EQ(second, 1);
  EXPECT_EQ(Trials(store_->RecordsOfJob("import", 0)), (std::vector<uint32_t>{0, 1, 2}));
  batch.push_back(TestRecord("", 5, NAN));
  batch.push_back(TestRecord("", 6));
  EXPECT_THAT(store_->ImportRecords("import", batch),
              StatusIs(StatusCode::kInvalidArgument, testing::_));
  EXPECT_EQ(Trials(store_->RecordsOfJob("import", 0)).size(), 3) << "all or nothing";
  EXPECT_THAT(store_->ImportRecords("none", batch), StatusIs(StatusCode::kNotFound, testing::_));
}

TEST_P(StoreTest, InvalidRecordsAreRefused) {
  AddJob("j");
  EXPECT_THAT(store_->AddRecord(TestRecord("j", 0, NAN)),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("cost nan s")));
  EXPECT_EQ(Trials(store_->RecordsOfJob("j", 0)), std::vector<uint32_t>{});
}

TEST_P(StoreTest, ABatchIsAllOrNothing) {
  AddJob("j");
  std::vector<Record> batch = {TestRecord("j", 0), TestRecord("j", 1), TestRecord("j", 0)};
  EXPECT_THAT(store_->AddRecords(batch),
              StatusIs(StatusCode::kAlreadyExists, HasSubstr("trial 0")));
  EXPECT_THAT(Trials(store_->RecordsOfJob("j", 0)), IsEmpty());
  batch[2] = TestRecord("none", 2);
  EXPECT_THAT(store_->AddRecords(batch), StatusIs(StatusCode::kNotFound, "no job none"));
  EXPECT_THAT(Trials(store_->RecordsOfJob("j", 0)), IsEmpty());
  batch[2] = TestRecord("j", 2);
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> ids, store_->AddRecords(batch));
  ASSERT_EQ(ids.size(), 3);
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const Record record, store_->GetRecord(ids[i]));
    EXPECT_EQ(record.trial, i);
  }
  EXPECT_LT(ids[0], ids[1]);
  EXPECT_LT(ids[1], ids[2]);
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> none, store_->AddRecords({}));
  EXPECT_THAT(none, IsEmpty());
}

TEST_P(StoreTest, RecordsOfJobAreOrderedByTrial) {
  AddJob("j");
  for (uint32_t trial : {3, 0, 2, 7}) Add(TestRecord("j", trial));
  Add(FailedRecord("j", 1, 4));
  EXPECT_THAT(Trials(store_->RecordsOfJob("j", 0)), ElementsAre(0, 1, 2, 3, 7));
  EXPECT_THAT(Trials(store_->RecordsOfJob("j", 2)), ElementsAre(2, 3, 7));
  EXPECT_THAT(Trials(store_->RecordsOfJob("j", 8)), IsEmpty());
  EXPECT_THAT(Trials(store_->RecordsOfJob("k", 0)), IsEmpty());
}

TEST_P(StoreTest, DeletedRecordsAreGone) {
  AddJob("j");
  std::vector<int64_t> ids;
  for (uint32_t trial = 0; trial < 4; ++trial) {
    ids.push_back(Add(TestRecord("j", trial, 1e-3 * (1 + trial))));
  }
  const std::vector<int64_t> gone = {ids[0], 99, ids[3]};
  EXPECT_EQ(*store_->DeleteRecords(gone), 2);
  EXPECT_EQ(*store_->DeleteRecords(gone), 0);
  EXPECT_THAT(store_->GetRecord(ids[3]), StatusIs(StatusCode::kNotFound, _));
  EXPECT_THAT(Trials(store_->RecordsOfJob("j", 0)), ElementsAre(1, 2));
  EXPECT_EQ(Best(kTest, ""), 1);
  EXPECT_EQ(store_->CountTrials("j")->total, 2);
  EXPECT_GT(Add(TestRecord("j", 3)), ids[3]) << "a number means one record for ever";
  const Remeasurement remeasured = {.id = ids[1], .costs_s = {5e-3}};
  ASSERT_OK(store_->SetRemeasurements({&remeasured, 1}));
  EXPECT_EQ(store_->GetRecord(ids[1])->remeasured_costs_s, remeasured.costs_s);
}

TEST_P(StoreTest, RecordsOfAJobThatGoesOnAreNotDeleted) {
  AddJob("j");
  const int64_t id = Add(TestRecord("j", 0));
  EXPECT_THAT(DeleteRecordsOfEndedJobs(*store_, {&id, 1}).status(),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("of job j, which is queued")));
  ASSERT_OK(store_->UpdateJobState("j", JobState::kCancelled, "", 1));
  EXPECT_EQ(*DeleteRecordsOfEndedJobs(*store_, {&id, 1}), 1);
}

// Records of one device share its text. A device that is not known stays unknown.
TEST_P(StoreTest, RecordsKeepTheirDevice) {
  AddJob("j");
  Record of_none = TestRecord("j", 2), of_other = TestRecord("j", 3);
  of_none.device_model.clear();
  of_other.device_model = "cores=4 name=a CPU";
  ASSERT_OK(store_->AddRecords(
      std::vector<Record>{TestRecord("j", 0), TestRecord("j", 1), of_none, of_other}));
  std::vector<std::string> models;
  const std::vector<Record> records = *store_->RecordsOfJob("j", 0);
  for (const Record& record : records) models.push_back(record.device_model);
  const std::string usual = TestRecord("j", 0).device_model;
  EXPECT_THAT(models, testing::ElementsAre(usual, usual, "", "cores=4 name=a CPU"));
}

TEST_P(StoreTest, ThreadsShareIt) {
  AddJob("j");
  constexpr uint32_t kTrials = 40;
  std::atomic<int> added = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t trial = 0; trial < kTrials; ++trial) {
        const Status status = store_->AddRecord(TestRecord("j", trial, 1.0 + t)).status();
        ++(status.ok() ? added : refused);
        EXPECT_TRUE(status.ok() || status.code() == StatusCode::kAlreadyExists) << status;
        EXPECT_OK(store_->BestRecords(kTest, ""));
        EXPECT_OK(store_->CountTrials("j"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(added, static_cast<int>(kTrials));
  EXPECT_EQ(refused, static_cast<int>(3 * kTrials));
  EXPECT_EQ(Trials(store_->RecordsOfJob("j", 0)).size(), kTrials);
}

TEST_P(StoreTest, AnImportIsCountedAsAnyJob) {
  AddJob("import");
  ASSERT_OK_AND_ASSIGN(TrialCounts counts, store_->CountTrials("import"));
  EXPECT_EQ(counts.total, 0);
  EXPECT_EQ(counts.next_trial, 0u);
  std::vector<Record> records;
  for (uint32_t i = 0; i < 5; ++i) records.push_back(TestRecord("", i));
  records.push_back(FailedRecord("", 9, 4));
  ASSERT_OK(store_->ImportRecords("import", records));
  ASSERT_OK_AND_ASSIGN(counts, store_->CountTrials("import"));
  EXPECT_EQ(counts.total, 6);
  EXPECT_EQ(counts.by_error[0], 5);
  EXPECT_EQ(counts.by_error[4], 1);
  EXPECT_EQ(counts.by_task[0], 6);
  EXPECT_EQ(counts.next_trial, 6u);
  // Adds known records, and one that is added alone.
  EXPECT_EQ(*store_->ImportRecords("import", records), 0);
  Add(FailedRecord("import", 6, 4));
  Add(FailedRecord("import", 6, 4));
  ASSERT_OK_AND_ASSIGN(counts, store_->CountTrials("import"));
  EXPECT_EQ(counts.total, 7);
  EXPECT_EQ(counts.by_error[4], 2);
  ASSERT_OK_AND_ASSIGN(const std::vector<Record> all, store_->RecordsOfJob("import", 0));
  const int64_t gone[] = {all[0].id, all[5].id, all[6].id};
  ASSERT_OK(store_->DeleteRecords(gone));
  ASSERT_OK_AND_ASSIGN(counts, store_->CountTrials("import"));
  EXPECT_EQ(counts.total, 4);
  EXPECT_EQ(counts.by_error[4], 0);
}

AutotvmRecord TestAutotvmRecord(int64_t index, double cost_s, const std::string& task = "dense") {
  return {.target = "cuda -model=t4",
          .task = task,
          .args = R"([["TENSOR", [1, 768], "float32"], null])",
          .kwargs = "{}",
          .config_index = index,
          .entities = R"([["tile_k", "sp", [-1, 48]]])",
          .costs_s = {cost_s, 2 * cost_s},
          .all_cost_s = 1.0 / 3.0,
          .timestamp_s = 1609326547.64094,
          .version = 0.2,
          .tvm_version = "0.8.dev0"};
}

TEST_P(StoreTest, AutotvmRecordsAreKeptToTheLastBitAndOnce) {
  AutotvmRecord plain = TestAutotvmRecord(1, 1.0 / 3.0);
  AutotvmRecord other = TestAutotvmRecord(2, 1e9, "conv");
  other.error = 4;
  other.code_hash = "ab";
  other.tvm_version.reset();
  other.target = "llvm";
  const AutotvmRecord both[] = {plain, other, plain};
  ASSERT_OK_AND_ASSIGN(const int64_t first, store_->ImportAutotvmRecords(both));
  EXPECT_EQ(first, 2);
  // A record of another copy of the log, with rounded costs.
  AutotvmRecord rounded = TestAutotvmRecord(1, 0.333);
  ASSERT_OK_AND_ASSIGN(const int64_t again, store_->ImportAutotvmRecords({&rounded, 1}));
  EXPECT_EQ(again, 0);

  const auto visited = [&](const AutotvmFilter& filter) {
    std::vector<AutotvmRecord> records;
    EXPECT_OK(store_->ForEachAutotvmRecord(filter, [&](const AutotvmRecord& record) {
      records.push_back(record);
      return OkStatus();
    }));
    return records;
  };
  plain.id = 1;
  other.id = 2;
  EXPECT_EQ(visited({.include_errors = true}), (std::vector{plain, other}));
  EXPECT_EQ(visited({}), std::vector{plain});
  EXPECT_EQ(visited({.task = "conv", .include_errors = true}), std::vector{other});
  EXPECT_EQ(visited({.target = "cuda", .include_errors = true}), std::vector{plain});
  EXPECT_THAT(
      store_->ForEachAutotvmRecord({}, [](const AutotvmRecord&) { return Cancelled("enough"); }),
      StatusIs(StatusCode::kCancelled, "enough"));
}

TEST_P(StoreTest, ManyAutotvmRecordsAreVisitedByNumber) {
  std::vector<AutotvmRecord> records;
  for (int64_t i = 0; i < 600; ++i) records.push_back(TestAutotvmRecord(i, 1e-3));
  ASSERT_OK(store_->ImportAutotvmRecords(records));
  int64_t next = 0;
  ASSERT_OK(store_->ForEachAutotvmRecord({}, [&](const AutotvmRecord& record) {
    EXPECT_EQ(record.config_index, next++);
    return OkStatus();
  }));
  EXPECT_EQ(next, 600);
}

TEST_P(StoreTest, AutotvmRecordsAreDeletedAndTheirNumbersAreNotGivenAgain) {
  const auto configurations = [&] {
    // Pairs of number and configuration.
    std::vector<std::pair<int64_t, int64_t>> found;
    EXPECT_OK(store_->ForEachAutotvmRecord({}, [&](const AutotvmRecord& record) {
      found.emplace_back(record.id, record.config_index);
      return OkStatus();
    }));
    return found;
  };
  std::vector<AutotvmRecord> records;
  for (int64_t i = 0; i < 4; ++i) records.push_back(TestAutotvmRecord(i, 1e-3));
  ASSERT_OK(store_->ImportAutotvmRecords(records));
  const int64_t gone[] = {2, 4, 99};
  EXPECT_EQ(*store_->DeleteAutotvmRecords(gone), 2);
  EXPECT_EQ(*store_->DeleteAutotvmRecords(gone), 0);
  EXPECT_EQ(*store_->DeleteAutotvmRecords({}), 0);
  EXPECT_THAT(configurations(), ElementsAre(Pair(1, 0), Pair(3, 2)));
  // The number 4 still means the record that is gone to those who kept it.
  EXPECT_EQ(*store_->ImportAutotvmRecords(records), 2);
  EXPECT_THAT(configurations(), ElementsAre(Pair(1, 0), Pair(3, 2), Pair(5, 1), Pair(6, 3)));
  const int64_t all[] = {1, 3, 5, 6};
  EXPECT_EQ(*store_->DeleteAutotvmRecords(all), 4);
  EXPECT_THAT(configurations(), IsEmpty());
  EXPECT_EQ(*store_->ImportAutotvmRecords({records.data(), 1}), 1);
  EXPECT_THAT(configurations(), ElementsAre(Pair(7, 0)));
}

// Each kind of record has numbers of its own.
TEST_P(StoreTest, DeletingAutotvmRecordsLeavesOthersAlone) {
  AddJob("j");
  ASSERT_OK_AND_ASSIGN(const int64_t id, store_->AddRecord(TestRecord("j", 0, 1e-3)));
  const AutotvmRecord autotvm = TestAutotvmRecord(1, 1e-3);
  ASSERT_OK(store_->ImportAutotvmRecords({&autotvm, 1}));
  ASSERT_EQ(id, 1);
  EXPECT_EQ(*store_->DeleteAutotvmRecords({&id, 1}), 1);
  EXPECT_OK(store_->GetRecord(id));
}

TEST_P(StoreTest, AnAutotvmRecordThatCannotBeSpoilsItsBatch) {
  AutotvmRecord bad[] = {TestAutotvmRecord(1, 1e-3), TestAutotvmRecord(2, -1)};
  EXPECT_THAT(store_->ImportAutotvmRecords(bad),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("cost -1 s")));
  int visited = 0;
  ASSERT_OK(store_->ForEachAutotvmRecord({}, [&](const AutotvmRecord&) {
    ++visited;
    return OkStatus();
  }));
  EXPECT_EQ(visited, 0);
}

}  // namespace
}  // namespace kiln::store
