#include "store/batch_writer.h"

#include <memory>
#include <vector>

#include "base/status_testing.h"
#include "store/faulty_store_testing.h"
#include "store/memory_store.h"
#include "store/record_testing.h"

namespace kiln::store {
namespace {

using testing::HasSubstr;

class BatchWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    JobRow job;
    job.id = "import";
    job.state = JobState::kSucceeded;
    ASSERT_OK(memory_->AddJob(job));
  }
  // Returns ten records that differ from those of other numbers.
  static BatchWriter::Batch BatchOf(uint32_t number) {
    BatchWriter::Batch batch;
    for (uint32_t i = 0; i < 10; ++i)
      batch.records.push_back(TestRecord("import", 10 * number + i));
    return batch;
  }
  std::vector<Record> Records() const { return *memory_->RecordsOfJob("import", 0); }

  const std::unique_ptr<Store> memory_ = NewMemoryStore();
  FaultyStore store_{*memory_};
};

TEST_F(BatchWriterTest, BatchesAreCommittedInTheirOrderAndCounted) {
  BatchWriter writer(store_, "import");
  for (uint32_t number = 0; number < 50; ++number) ASSERT_OK(writer.Put(BatchOf(number)));
  // The store has all of these already.
  BatchWriter::Batch last = BatchOf(49);
  const AutotvmRecord autotvm{.target = "llvm", .task = "t", .costs_s = {1}};
  last.autotvm = {autotvm, autotvm};
  ASSERT_OK_AND_ASSIGN(const BatchWriter::Counts counts, writer.Finish(std::move(last)));
  EXPECT_EQ(counts.imported, 501);
  EXPECT_EQ(counts.autotvm, 1);
  EXPECT_EQ(counts.duplicates, 11);
  const std::vector<Record> records = Records();
  ASSERT_EQ(records.size(), 500u);
  for (uint32_t i = 0; i < 500; ++i) EXPECT_EQ(records[i].timestamp_s, 1700000000 + i);
}

TEST_F(BatchWriterTest, AfterAnErrorNothingMoreIsCommitted) {
  BatchWriter writer(store_, "import");
  store_.FailAt(/*write=*/2, /*calls=*/1, Unavailable("the disk is away"));
  Status status;
  uint32_t number = 0;
  for (; status.ok() && number < 50; ++number) status = writer.Put(BatchOf(number));
  EXPECT_THAT(status, StatusIs(StatusCode::kUnavailable, HasSubstr("the disk is away")));
  EXPECT_EQ(number, 4u) << "the third one fails, and the next Put says so";
  EXPECT_THAT(writer.Put(BatchOf(9)), StatusIs(StatusCode::kUnavailable, HasSubstr("away")));
  EXPECT_THAT(writer.Finish(BatchOf(9)), StatusIs(StatusCode::kUnavailable, HasSubstr("away")));
  EXPECT_EQ(Records().size(), 20u);
}

TEST_F(BatchWriterTest, TheLastBatchMayFailToo) {
  BatchWriter writer(store_, "import");
  store_.FailAt(/*write=*/1, /*calls=*/1, Unavailable("the disk is away"));
  ASSERT_OK(writer.Put(BatchOf(0)));
  EXPECT_THAT(writer.Finish(BatchOf(1)), StatusIs(StatusCode::kUnavailable, HasSubstr("away")));
}

TEST_F(BatchWriterTest, AWriterThatIsLeftCommitsWhatItWasGiven) {
  {
    BatchWriter writer(store_, "import");
    for (uint32_t number = 0; number < 5; ++number) ASSERT_OK(writer.Put(BatchOf(number)));
  }
  EXPECT_EQ(Records().size(), 50u);
}

}  // namespace
}  // namespace kiln::store
