#include "rpc/lease_source.h"

#include <optional>
#include <thread>

#include "base/status_testing.h"
#include "rpc/lease_source_testing.h"

namespace kiln {
namespace {

v1::WorkerState Worker(std::string_view id, uint32_t slots) {
  v1::WorkerState worker;
  worker.set_id(std::string(id));
  worker.set_slots(slots);
  return worker;
}

TEST(LeaseSourceTest, GivesOutSlotsAndTakesThemBack) {
  FakeLeaseSource source;
  source.AddWorker(Worker("w", 1));
  ASSERT_OK_AND_ASSIGN(LeasedWorker lease, source.Acquire(absl::ZeroDuration(), {}));
  EXPECT_EQ(lease.worker().id(), "w");
  EXPECT_THAT(source.Acquire(absl::Milliseconds(5), {}),
              StatusIs(StatusCode::kDeadlineExceeded, testing::_));
  lease.Release();
  EXPECT_EQ(source.held(), 0);
  EXPECT_OK(source.Acquire(absl::ZeroDuration(), {}));
  EXPECT_EQ(source.held(), 0) << "the handle above is gone";
  EXPECT_EQ(source.acquired(), 2);
}

TEST(LeaseSourceTest, AHandleReleasesOnceHoweverItMoves) {
  int released = 0;
  v1::Lease lease;
  {
    LeasedWorker a(lease, std::make_shared<LeasedWorker::Signals>(), [&] { ++released; });
    LeasedWorker b = std::move(a);
    std::optional<LeasedWorker> c(std::move(b));
    EXPECT_EQ(released, 0);
    LeasedWorker d(lease, std::make_shared<LeasedWorker::Signals>(), [&] { released += 10; });
    d = std::move(*c);
    EXPECT_EQ(released, 10);
    d.Release();
    d.Release();
    EXPECT_EQ(released, 11);
  }
  EXPECT_EQ(released, 11);
}

TEST(LeaseSourceTest, LostAndWantedReachTheHolder) {
  FakeLeaseSource source;
  source.AddWorker(Worker("w", 2));
  ASSERT_OK_AND_ASSIGN(LeasedWorker lease, source.Acquire(absl::ZeroDuration(), {}));
  bool cancelled = false;
  const std::stop_callback on_lost(lease.lost_token(), [&] { cancelled = true; });
  EXPECT_FALSE(lease.wanted());
  source.Want("w");
  EXPECT_TRUE(lease.wanted());
  EXPECT_FALSE(lease.lost());
  source.RemoveWorker("w");
  EXPECT_TRUE(lease.lost());
  EXPECT_TRUE(cancelled);
  EXPECT_THAT(source.Acquire(absl::ZeroDuration(), {}),
              StatusIs(StatusCode::kDeadlineExceeded, testing::_));
}

TEST(LeaseSourceTest, AStopAndANewWorkerWakeWhoWaits) {
  FakeLeaseSource source;
  std::stop_source stop;
  std::thread stopper([&] { stop.request_stop(); });
  EXPECT_THAT(source.Acquire(absl::InfiniteDuration(), stop.get_token()),
              StatusIs(StatusCode::kCancelled, testing::_));
  stopper.join();
  std::thread adder([&] { source.AddWorker(Worker("w", 1)); });
  EXPECT_OK(source.Acquire(absl::InfiniteDuration(), {}));
  adder.join();
}

}  // namespace
}  // namespace kiln
