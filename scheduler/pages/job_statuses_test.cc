#include "scheduler/pages/job_statuses.h"

#include "base/status_testing.h"
#include "store/memory_store.h"

namespace kiln::scheduler {
namespace {

class JobStatusesTest : public testing::Test {
 protected:
  JobStatusesTest() {
    row_.id = "j1";
    row_.state = store::JobState::kRunning;
    EXPECT_OK(store_->AddJob(row_));
  }

  StatusOr<v1::JobStatus> Read(const store::JobRow& job) {
    ++reads_;
    v1::JobStatus status;
    status.set_id(job.id);
    status.set_state(static_cast<v1::JobState>(job.state));
    status.add_tasks()->mutable_spec()->set_dag("a long text");
    return status;
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  FakeClock clock_;
  int reads_ = 0;
  store::JobRow row_;
  JobStatuses statuses_{*store_, [this](const store::JobRow& job) { return Read(job); }, clock_};
};

TEST_F(JobStatusesTest, ReadsOnceForAMoment) {
  EXPECT_EQ(statuses_.Known(row_), nullptr);
  const auto seen = statuses_.Of(row_);
  ASSERT_OK(seen);
  EXPECT_EQ((*seen)->status.id(), "j1");
  // Lists need no texts of computations.
  EXPECT_EQ((*seen)->status.tasks(0).spec().dag(), "");
  ASSERT_OK(statuses_.Of(row_));
  EXPECT_EQ(reads_, 1);
  EXPECT_NE(statuses_.Known(row_), nullptr);
  clock_.Advance(absl::Milliseconds(1'100));
  EXPECT_EQ(statuses_.Known(row_), nullptr);
  ASSERT_OK(statuses_.Of(row_));
  EXPECT_EQ(reads_, 2);
}

TEST_F(JobStatusesTest, ReadsAnEndedJobSeldomAndAChangedOneAtOnce) {
  ASSERT_OK(statuses_.Of(row_));
  row_.state = store::JobState::kSucceeded;
  ASSERT_OK(statuses_.Of(row_));
  EXPECT_EQ(reads_, 2);
  clock_.Advance(absl::Seconds(30));
  ASSERT_OK(statuses_.Of(row_));
  EXPECT_EQ(reads_, 2);
  clock_.Advance(absl::Seconds(31));
  ASSERT_OK(statuses_.Of(row_));
  EXPECT_EQ(reads_, 3);
}

TEST_F(JobStatusesTest, ReadsRoundsOnFromTheLastOne) {
  store::RoundRow round;
  round.job_id = "j1";
  round.trials = 16;
  round.total_latency_s = 2e-3;
  ASSERT_OK(store_->AddRound(round));
  EXPECT_EQ((*statuses_.Of(row_))->curve.points().size(), 1u);
  ASSERT_OK(store_->AddRound(round));
  clock_.Advance(absl::Seconds(2));
  EXPECT_EQ((*statuses_.Of(row_))->curve.points().size(), 2u);
}

}  // namespace
}  // namespace kiln::scheduler
