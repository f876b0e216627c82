#include "scheduler/service/watch_start.h"

#include "base/status_testing.h"
#include "store/memory_store.h"
#include "store/record_testing.h"

namespace kiln::scheduler {
namespace {

class WatchStartTest : public testing::Test {
 protected:
  WatchStartTest() {
    for (const char* id : {"job", "other"}) {
      KILN_CHECK(store_->AddJob({.id = id}).ok(), "no job {}", id);
    }
  }

  int64_t Add(const std::string& job, uint32_t trial) {
    const auto id = store_->AddRecord(store::TestRecord(job, trial, 1e-3));
    EXPECT_OK(id);
    return id.value_or(0);
  }

  const std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
};

TEST_F(WatchStartTest, LeavesOutNoTrialThatCameEarly) {
  Add("job", 0);
  // Trial 3 overtook the trials 1 and 2.
  const int64_t early = Add("job", 3);
  Add("other", 9);
  for (const uint32_t trial : {1u, 2u, 4u}) Add("job", trial);
  ASSERT_OK_AND_ASSIGN(const int64_t before, IdBeforeTrial(*store_, "job", 3, 5));
  EXPECT_EQ(before, early - 1);
}

TEST_F(WatchStartTest, BehindAllTrialsIsBehindTheLastRecord) {
  Add("job", 0);
  const int64_t last = Add("job", 1);
  Add("other", 0);
  ASSERT_OK_AND_ASSIGN(int64_t before, IdBeforeTrial(*store_, "job", 2, 2));
  EXPECT_EQ(before, last);
  // The count was read before a trial came.
  const int64_t next = Add("job", 2);
  ASSERT_OK_AND_ASSIGN(before, IdBeforeTrial(*store_, "job", 2, 2));
  EXPECT_EQ(before, next - 1);
}

TEST_F(WatchStartTest, TheFirstTrialAndManyTrialsBeginWithTheFirstRecord) {
  Add("other", 0);
  Add("job", 0);
  EXPECT_EQ(*IdBeforeTrial(*store_, "job", 0, 1), 0);
  EXPECT_EQ(*IdBeforeTrial(*store_, "job", 1, kFewTrials + 2), 0);
  EXPECT_EQ(*IdBeforeTrial(*store_, "none", 5, 0), 0);
}

}  // namespace
}  // namespace kiln::scheduler
