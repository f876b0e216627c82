// Tests how much ForEachRecord reads before the first records are visited.
#include <algorithm>
#include <memory>
#include <vector>

#include "base/status_testing.h"
#include "store/memory_store.h"
#include "store/record_testing.h"
#include "store/store_decorator.h"

namespace kiln::store {
namespace {

// Counts of rows that were read through a snapshot.
struct ReadCounts {
  size_t ids = 0, records = 0;
};

// Counts what another snapshot returns.
class CountingSnapshot final : public Store::Snapshot {
 public:
  CountingSnapshot(Store::Snapshot& snapshot, ReadCounts& counts)
      : snapshot_(snapshot), counts_(counts) {}

  StatusOr<std::vector<int64_t>> Ids(const RecordFilter& filter, const Store::Names& names,
                                     uint32_t limit) override {
    auto ids = snapshot_.Ids(filter, names, limit);
    if (ids.ok()) counts_.ids += ids->size();
    return ids;
  }
  StatusOr<int64_t> IdBeforeTrial(std::string_view job_id, uint32_t from_trial,
                                  uint32_t most) override {
    return snapshot_.IdBeforeTrial(job_id, from_trial, most);
  }
  StatusOr<std::vector<Record>> Records(std::span<const int64_t> ids) override {
    counts_.records += ids.size();
    return snapshot_.Records(ids);
  }
  StatusOr<std::vector<Record>> RecordsNamed(const Store::Names& names,
                                             std::string_view target) override {
    return snapshot_.RecordsNamed(names, target);
  }
  StatusOr<std::vector<Record>> BestNamed(std::string_view name, std::string_view target) override {
    return snapshot_.BestNamed(name, target);
  }
  StatusOr<bool> HasMeasurementNamed(std::string_view name, const Record& record) override {
    return snapshot_.HasMeasurementNamed(name, record);
  }
  StatusOr<Store::KeyBinding> KeyBindingOf(std::string_view key) override {
    return snapshot_.KeyBindingOf(key);
  }
  StatusOr<std::vector<std::string>> KeysOfId(std::string_view workload_id) override {
    return snapshot_.KeysOfId(workload_id);
  }
  StatusOr<std::vector<AutotvmRecord>> AutotvmRecords(const AutotvmFilter& filter, int64_t after_id,
                                                      uint32_t limit) override {
    return snapshot_.AutotvmRecords(filter, after_id, limit);
  }

 private:
  Store::Snapshot& snapshot_;
  ReadCounts& counts_;
};

class CountingStore final : public StoreDecorator {
 public:
  explicit CountingStore(Store& store) : StoreDecorator(store) {}
  Status Read(const std::function<Status(Snapshot&)>& read) override {
    return StoreDecorator::Read([&](Snapshot& snapshot) {
      CountingSnapshot counting(snapshot, counts_);
      return read(counting);
    });
  }
  const ReadCounts& counts() const { return counts_; }

 protected:
  Status Around(Access, const std::function<Status()>& call) override { return call(); }

 private:
  ReadCounts counts_;
};

class RecordPagesTest : public testing::Test {
 protected:
  static constexpr uint32_t kTrials = 5'000;

  RecordPagesTest() {
    KILN_CHECK(store_->AddJob({.id = "job"}).ok(), "no job");
    std::vector<Record> records;
    for (uint32_t trial = 0; trial < kTrials; ++trial) records.push_back(TestRecord("job", trial));
    KILN_CHECK(store_->AddRecords(records).ok(), "no records");
  }

  const std::unique_ptr<Store> store_ = NewMemoryStore();
};

// A watcher of a large job waits for its first records, and not for the whole job.
TEST_F(RecordPagesTest, TheFirstRecordsOfAJobWaitForFewReads) {
  CountingStore store(*store_);
  int visited = 0;
  const Status gone = store.ForEachRecord({.job_id = "job"}, [&](const Record&) {
    return ++visited == 100 ? Cancelled("enough") : OkStatus();
  });
  EXPECT_THAT(gone, StatusIs(StatusCode::kCancelled, testing::_));
  EXPECT_LE(store.counts().ids, 256u);
  EXPECT_LE(store.counts().records, 288u);
  CountingStore of_one(*store_);
  EXPECT_FALSE(
      of_one.ForEachRecord({.job_id = "job"}, [](const Record&) { return Cancelled("x"); }).ok());
  EXPECT_LE(of_one.counts().records, 32u);
}

TEST_F(RecordPagesTest, EachRecordIsVisitedOnceInOrder) {
  for (const RecordFilter& filter :
       {RecordFilter{.job_id = "job"}, RecordFilter{.target = kTestTarget}}) {
    CountingStore store(*store_);
    std::vector<uint32_t> trials;
    ASSERT_OK(store.ForEachRecord(filter, [&](const Record& record) {
      trials.push_back(record.trial);
      return OkStatus();
    }));
    EXPECT_EQ(trials.size(), kTrials);
    EXPECT_TRUE(std::ranges::is_sorted(trials));
    EXPECT_EQ(store.counts().ids, kTrials);
    EXPECT_EQ(store.counts().records, kTrials);
  }
}

}  // namespace
}  // namespace kiln::store
