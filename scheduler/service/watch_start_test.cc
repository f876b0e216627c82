#include "scheduler/service/watch_start.h"

#include <algorithm>
#include <vector>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "proto/job_defaults.h"
#include "scheduler/dispatch/dispatch.h"
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

  // Adds the trials of a job that has so many in flight, which end by chance: the first of them
  // only at the end.
  void AddInDisorder(uint32_t trials, uint32_t in_flight) {
    std::vector<uint32_t> going;
    for (uint32_t next = 0; next < trials || !going.empty();) {
      while (next < trials && going.size() < in_flight) going.push_back(next++);
      const bool spared = next < trials && going.size() > 1;
      const auto at =
          going.begin() + (spared ? 1 : 0) + UniformInt(rng_, std::ssize(going) - (spared ? 1 : 0));
      Add("job", *at);
      going.erase(at);
      if (Chance(rng_, 0.2)) Add("other", others_++);
    }
  }

  // Returns how many records of earlier trials a watcher reads.
  int64_t ReadInVain(uint32_t from_trial) {
    const auto before = IdBeforeTrial(*store_, "job", from_trial);
    EXPECT_OK(before);
    int64_t vain = 0;
    const std::vector<store::Record> records = *store_->RecordsOfJob("job", 0);
    for (const store::Record& record : records) {
      const bool is_read = record.id > before.value_or(0);
      EXPECT_TRUE(is_read || record.trial < from_trial) << record.trial;
      if (is_read && record.trial < from_trial) ++vain;
    }
    return vain;
  }

  const std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  Rng rng_{7};
  uint32_t others_ = 0;
};

TEST_F(WatchStartTest, MissesNoTrialAndReadsFewInVain) {
  AddInDisorder(3'000, 200);
  for (uint32_t from = 0; from <= 3'300; from += 275) {
    EXPECT_LE(ReadInVain(from), int64_t{kMostInFlight}) << from;
  }
}

TEST_F(WatchStartTest, MissesNoTrialIfManyWereDeleted) {
  AddInDisorder(2'500, 100);
  std::vector<int64_t> deleted;
  const std::vector<store::Record> records = *store_->RecordsOfJob("job", 0);
  for (const store::Record& record : records) {
    if (Chance(rng_, 0.2)) deleted.push_back(record.id);
  }
  ASSERT_OK(store_->DeleteRecords(deleted));
  for (uint32_t from = 0; from <= 2'600; from += 200) {
    EXPECT_LE(ReadInVain(from), int64_t{kMostInFlight}) << from;
  }
}

// The start relies on it.
TEST_F(WatchStartTest, NoDispatcherHasMoreTrialsInFlight) {
  const DispatchOptions options;
  const int most = options.max_builders + static_cast<int>(kMostServedBuilds) +
                   2 * options.max_runners + options.queued;
  EXPECT_LE(most, static_cast<int>(kMostInFlight));
}

TEST_F(WatchStartTest, BehindAllTrialsIsBehindTheLastRecord) {
  int64_t last = 0;
  for (uint32_t trial = 0; trial < 20; ++trial) last = Add("job", trial);
  Add("other", 0);
  EXPECT_EQ(*IdBeforeTrial(*store_, "job", 1'000'000), last);
  EXPECT_EQ(*IdBeforeTrial(*store_, "none", 1'000'000), 0);
  EXPECT_EQ(*IdBeforeTrial(*store_, "job", 20), last);
  EXPECT_EQ(*IdBeforeTrial(*store_, "job", 19), last - 1);
  EXPECT_EQ(*IdBeforeTrial(*store_, "job", 0), 0);
}

}  // namespace
}  // namespace kiln::scheduler
