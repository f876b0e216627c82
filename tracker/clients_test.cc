// Tests WorkerAnnouncer and LeaseKeeper against a real tracker, its restarts and outages.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "rpc/lease_keeper.h"
#include "rpc/worker_announcer.h"
#include "tracker/tracker_testing.h"

namespace kiln::tracker {
namespace {

using testing::HasSubstr;

v1::WorkerState Worker(std::string_view id, uint32_t slots) {
  v1::WorkerState worker;
  worker.set_id(std::string(id));
  worker.set_kind(v1::RUNNER);
  worker.set_address(fmt::format("{}:1", id));
  worker.add_keys("cuda");
  worker.set_slots(slots);
  worker.mutable_device_model()->set_name("a device");
  return worker;
}

// Returns short times, for which a second is long.
TrackerService::Options Fast() {
  TrackerService::Options options;
  options.registry.deadline_ms = 1'000;
  options.registry.default_lease_ms = 1'000;
  options.registry.request_idle_ms = 1'000;
  options.registry.renew_ms = 50;
  options.registry.refill_ms = 2'500;
  options.registry.turn_ms = 200;
  return options;
}

LeaseKeeper::Options KeeperOptions(const TestTracker& tracker, std::string_view user,
                                   int max_leases) {
  LeaseKeeper::Options options;
  options.tracker = tracker.address();
  options.scheduler_id = fmt::format("s-{}", user);
  options.key = "cuda";
  options.user = std::string(user);
  options.max_leases = max_leases;
  return options;
}

class ClientsTest : public testing::Test {
 protected:
  std::unique_ptr<WorkerAnnouncer> Announce(std::string_view id, uint32_t slots) {
    auto announcer = std::make_unique<WorkerAnnouncer>(WorkerAnnouncer::Options{
        .tracker = tracker_.address(), .state = [state = Worker(id, slots)] { return state; }});
    EXPECT_TRUE(announcer->WaitConnected(absl::Seconds(10)));
    return announcer;
  }

  TestTracker tracker_{Fast()};
};

// The tracker's time passes only by Advance; that of its clients passes as usual. Times are short,
// so that the clients call often.
class FakeTimeTest : public testing::Test {
 protected:
  static constexpr int64_t kSilenceMs = 100;

  static TrackerService::Options OptionsOf(FakeClock& clock) {
    TrackerService::Options options = Fast();
    options.registry.deadline_ms = options.registry.default_lease_ms = kSilenceMs;
    options.clock = &clock;
    return options;
  }

  std::unique_ptr<WorkerAnnouncer> Announce(std::string_view id, uint32_t slots) {
    auto announcer = std::make_unique<WorkerAnnouncer>(WorkerAnnouncer::Options{
        .tracker = tracker_.address(), .state = [this, state = Worker(id, slots)] {
          ++announced_;
          return state;
        }});
    EXPECT_TRUE(announcer->WaitConnected(absl::Seconds(10)));
    return announcer;
  }

  // Lets half of the longest silence pass, until the worker, and the keeper if there is one, have
  // been heard after it. A call begins when the one before it has been answered.
  void AdvanceUntilHeard(bool is_kept) {
    clock_.Advance(absl::Milliseconds(kSilenceMs / 2));
    const int announced = announced_, renewals = tracker_.renewals();
    EXPECT_TRUE(Eventually([&] {
      return announced_ >= announced + 2 && (!is_kept || tracker_.renewals() >= renewals + 2);
    }));
  }

  FakeClock clock_;
  std::atomic<int> announced_ = 0;
  TestTracker tracker_{OptionsOf(clock_)};
};

TEST_F(FakeTimeTest, AWorkerJoinsStaysAndLeaves) {
  auto worker = Announce("w", 2);
  for (int i = 0; i < 4; ++i) AdvanceUntilHeard(/*is_kept=*/false);
  EXPECT_EQ(tracker_.List().workers_size(), 1);
  EXPECT_TRUE(worker->connected());
  worker.reset();
  EXPECT_EQ(tracker_.List().workers_size(), 0) << "left at once, not by silence";
}

TEST_F(FakeTimeTest, AKeeperKeepsItsLeaseAndGivesItBack) {
  const auto worker = Announce("w", 1);
  LeaseKeeper keeper(KeeperOptions(tracker_, "ann", 1));
  {
    ASSERT_OK_AND_ASSIGN(const LeasedWorker lease, keeper.Acquire(absl::Seconds(10), {}));
    EXPECT_EQ(lease.worker().id(), "w");
    EXPECT_EQ(keeper.snapshot().held, 1);
    for (int i = 0; i < 4; ++i) AdvanceUntilHeard(/*is_kept=*/true);
    EXPECT_FALSE(lease.lost());
    EXPECT_EQ(tracker_.BusySlots(), 1u);
  }
  EXPECT_TRUE(Eventually([&] { return tracker_.BusySlots() == 0; }));
  EXPECT_OK(keeper.Acquire(absl::Seconds(10), {}));
}

TEST_F(ClientsTest, AChangedStateIsAnnouncedAtOnce) {
  std::atomic<uint32_t> slots = 1;
  WorkerAnnouncer announcer(
      {.tracker = tracker_.address(), .state = [&] { return Worker("w", slots); }});
  ASSERT_TRUE(announcer.WaitConnected(absl::Seconds(10)));
  slots = 3;
  announcer.AnnounceNow();
  EXPECT_TRUE(Eventually([&] {
    const v1::ListReply list = tracker_.List();
    return list.workers_size() == 1 && list.workers(0).slots() == 3;
  }));
}

TEST(ModesTest, AWorkerLearnsWithItsNextAnnouncementAndTellsARestartedTracker) {
  TestTracker tracker;
  WorkerModes modes;
  WorkerAnnouncer announcer(
      {.tracker = tracker.address(), .state = [] { return Worker("w", 1); }, .modes = &modes});
  ASSERT_TRUE(announcer.WaitConnected(absl::Seconds(10)));
  v1::SetWorkerModeRequest request;
  request.set_worker("w");
  request.set_mode(v1::WORKER_PAUSED);
  request.set_user("ada");
  v1::SetWorkerModeReply reply;
  grpc::ClientContext context;
  ASSERT_TRUE(tracker.NewStub()->SetWorkerMode(&context, request, &reply).ok());
  EXPECT_THAT(reply.workers(), testing::ElementsAre("w"));
  EXPECT_TRUE(Eventually([&] { return modes.Effective().mode == v1::WORKER_PAUSED; }));
  // The rest of a second is for the worker to stop its program.
  v1::AnnounceRequest announce;
  *announce.mutable_worker() = Worker("v", 1);
  v1::AnnounceReply answer;
  grpc::ClientContext again;
  ASSERT_TRUE(tracker.NewStub()->Announce(&again, announce, &answer).ok());
  EXPECT_LE(answer.next_announce_ms(), 500u);
  tracker.Stop();
  tracker.Restart();
  EXPECT_TRUE(Eventually([&] {
    const v1::ListReply list = tracker.List();
    return list.workers_size() == 1 && list.workers(0).mode_reason() == "paused by ada";
  }));
  EXPECT_EQ(modes.Effective().mode, v1::WORKER_PAUSED);
}

TEST_F(ClientsTest, WithoutATrackerTheAnnouncerDoesNothing) {
  WorkerAnnouncer announcer({.tracker = "", .state = [] { return Worker("never asked", 1); }});
  EXPECT_FALSE(announcer.WaitConnected(absl::Seconds(10)));
  EXPECT_FALSE(announcer.connected());
}

TEST_F(ClientsTest, AnAnnouncerWaitsForItsTracker) {
  tracker_.Stop();
  WorkerAnnouncer announcer(
      {.tracker = tracker_.address(), .state = [] { return Worker("w", 1); }});
  EXPECT_FALSE(announcer.WaitConnected(absl::Milliseconds(100)));
  tracker_.Restart();
  EXPECT_TRUE(announcer.WaitConnected(absl::Seconds(10)));
}

TEST_F(ClientsTest, ARefusedWorkerIsNotConnected) {
  WorkerAnnouncer announcer(
      {.tracker = tracker_.address(), .state = [] { return Worker("w", 0); }});
  EXPECT_FALSE(announcer.WaitConnected(absl::Milliseconds(200)));
}

TEST_F(ClientsTest, AcquireSaysWhyItFailed) {
  LeaseKeeper keeper(KeeperOptions(tracker_, "ann", 1));
  EXPECT_THAT(
      keeper.Acquire(absl::Milliseconds(50), {}),
      StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("no runner for 'cuda' is registered")));
  const auto worker = Announce("w", 1);
  LeaseKeeper other(KeeperOptions(tracker_, "bob", 2));
  ASSERT_OK_AND_ASSIGN(const LeasedWorker lease, other.Acquire(absl::Seconds(10), {}));
  EXPECT_THAT(other.Acquire(absl::Milliseconds(50), {}),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("all 1 runner slots")));
  EXPECT_THAT(keeper.Acquire(absl::Milliseconds(50), {}),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("are busy; position 1")));
  tracker_.Stop();
  EXPECT_THAT(keeper.Acquire(absl::Milliseconds(50), {}),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("does not answer")));
}

TEST_F(ClientsTest, ABadRequestFailsAtOnce) {
  LeaseKeeper::Options options = KeeperOptions(tracker_, "ann", 1);
  options.key = "";
  LeaseKeeper keeper(options);
  EXPECT_THAT(keeper.Acquire(absl::InfiniteDuration(), {}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("key is empty")));
}

TEST_F(ClientsTest, AStopEndsTheWaitAndLeavesNothingBehind) {
  LeaseKeeper keeper(KeeperOptions(tracker_, "ann", 1));
  std::stop_source stop;
  std::thread stopper([&] {
    EXPECT_TRUE(Eventually([&] { return tracker_.List().keys_size() == 1; }));
    stop.request_stop();
  });
  EXPECT_THAT(keeper.Acquire(absl::InfiniteDuration(), stop.get_token()),
              StatusIs(StatusCode::kCancelled, testing::_));
  stopper.join();
  EXPECT_TRUE(Eventually([&] { return tracker_.List().keys_size() == 0; }));
}

TEST_F(ClientsTest, NoMoreThanMaxLeases) {
  const auto worker = Announce("w", 4);
  LeaseKeeper keeper(KeeperOptions(tracker_, "ann", 2));
  ASSERT_OK_AND_ASSIGN(const LeasedWorker a, keeper.Acquire(absl::Seconds(10), {}));
  ASSERT_OK_AND_ASSIGN(LeasedWorker b, keeper.Acquire(absl::Seconds(10), {}));
  EXPECT_THAT(keeper.Acquire(absl::Milliseconds(20), {}),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("all 2 leases are in use")));
  b.Release();
  EXPECT_OK(keeper.Acquire(absl::Seconds(10), {}));
}

TEST_F(ClientsTest, ALeaseIsLostWithItsWorker) {
  auto worker = Announce("w", 1);
  LeaseKeeper keeper(KeeperOptions(tracker_, "ann", 1));
  ASSERT_OK_AND_ASSIGN(LeasedWorker lease, keeper.Acquire(absl::Seconds(10), {}));
  worker.reset();
  EXPECT_TRUE(Eventually([&] { return lease.lost(); }));
  EXPECT_EQ(keeper.snapshot().held, 0);
}

TEST_F(ClientsTest, AnotherUserMakesItWanted) {
  const auto worker = Announce("w", 1);
  LeaseKeeper ann(KeeperOptions(tracker_, "ann", 1));
  LeaseKeeper bob(KeeperOptions(tracker_, "bob", 1));
  std::optional<LeasedWorker> lease;
  {
    ASSERT_OK_AND_ASSIGN(LeasedWorker first, ann.Acquire(absl::Seconds(10), {}));
    lease.emplace(std::move(first));
  }
  std::thread waiter([&] { EXPECT_OK(bob.Acquire(absl::Seconds(20), {})); });
  EXPECT_TRUE(Eventually([&] { return lease->wanted(); }));
  EXPECT_FALSE(lease->lost());
  lease.reset();
  waiter.join();
}

TEST_F(ClientsTest, ARestartedTrackerIsRefilledAndNobodyLosesALease) {
  const auto w1 = Announce("w1", 1);
  const auto w2 = Announce("w2", 1);
  LeaseKeeper ann(KeeperOptions(tracker_, "ann", 1));
  LeaseKeeper bob(KeeperOptions(tracker_, "bob", 1));
  LeaseKeeper cid(KeeperOptions(tracker_, "cid", 1));
  ASSERT_OK_AND_ASSIGN(LeasedWorker a, ann.Acquire(absl::Seconds(10), {}));
  ASSERT_OK_AND_ASSIGN(const LeasedWorker b, bob.Acquire(absl::Seconds(10), {}));
  std::atomic<bool> granted = false;
  // This thread waits through the restart, and must not get a slot that others hold.
  std::thread waiter([&] {
    EXPECT_OK(cid.Acquire(absl::Seconds(30), {}));
    granted = true;
  });
  for (int i = 0; i < 2; ++i) {
    tracker_.Stop();
    ASSERT_TRUE(Eventually(
        [&] { return !ann.snapshot().tracker_reachable && !bob.snapshot().tracker_reachable; }));
    tracker_.Restart();
    ASSERT_TRUE(Eventually([&] {
      const v1::ListReply list = tracker_.List();
      return list.workers_size() == 2 && list.busy_slots(0) == 1 && list.busy_slots(1) == 1;
    }));
    EXPECT_TRUE(Eventually([&] { return tracker_.List().keys(0).pending() == 1; }));
  }
  const int before = tracker_.renewals();
  EXPECT_TRUE(Eventually([&] { return tracker_.renewals() >= before + 20; }));
  EXPECT_FALSE(a.lost());
  EXPECT_FALSE(b.lost());
  EXPECT_FALSE(granted);
  a.Release();
  waiter.join();
}

TEST_F(ClientsTest, AnOutageIsSurvivedForSoLong) {
  const auto worker = Announce("w", 1);
  LeaseKeeper::Options options = KeeperOptions(tracker_, "ann", 1);
  options.outage_ms = 1'500;
  LeaseKeeper keeper(options);
  ASSERT_OK_AND_ASSIGN(const LeasedWorker lease, keeper.Acquire(absl::Seconds(10), {}));
  const auto start = std::chrono::steady_clock::now();
  tracker_.Stop();
  EXPECT_TRUE(Eventually([&] { return lease.lost(); }));
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took, std::chrono::milliseconds(1'300));
}

TEST_F(ClientsTest, AHandleMayOutliveItsKeeper) {
  const auto worker = Announce("w", 1);
  auto keeper = std::make_unique<LeaseKeeper>(KeeperOptions(tracker_, "ann", 1));
  ASSERT_OK_AND_ASSIGN(LeasedWorker lease, keeper->Acquire(absl::Seconds(10), {}));
  keeper.reset();
  EXPECT_TRUE(lease.lost());
  EXPECT_EQ(tracker_.BusySlots(), 0u);
}

// Two schedulers with many threads each use many workers that come and go. No slot is used by two
// at a time as long as its worker lives, and every thread gets work done.
TEST_F(ClientsTest, ManyWorkersTwoSchedulers) {
  constexpr int kWorkers = 12;
  std::vector<std::unique_ptr<WorkerAnnouncer>> workers;
  for (int i = 0; i < kWorkers; ++i) workers.push_back(Announce(fmt::format("w{}", i), 1));
  std::vector<std::atomic<int>> users(kWorkers);
  std::atomic<int> overlaps = 0;
  std::vector<std::atomic<int>> done(2);
  std::stop_source stop;
  std::vector<std::unique_ptr<LeaseKeeper>> keepers;
  for (int s = 0; s < 2; ++s) {
    keepers.push_back(
        std::make_unique<LeaseKeeper>(KeeperOptions(tracker_, fmt::format("user{}", s), 10)));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 20; ++t) {
    threads.emplace_back([&, s = t % 2] {
      while (!stop.stop_requested()) {
        auto lease = keepers[s]->Acquire(absl::Seconds(30), stop.get_token());
        if (!lease.ok()) continue;
        std::atomic<int>& user = users[std::stoi(lease->worker().id().substr(1))];
        for (int trial = 0; trial < 20 && !lease->lost() && !lease->wanted(); ++trial) {
          if (user.fetch_add(1) != 0 && !lease->lost()) ++overlaps;
          absl::SleepFor(absl::Milliseconds(5));
          --user;
          ++done[s];
        }
      }
    });
  }
  const auto both_have_done = [&](int trials) {
    return Eventually([&] { return done[0] > trials && done[1] > trials; });
  };
  EXPECT_TRUE(both_have_done(100));
  for (int i = 0; i < 3; ++i) workers[i].reset();
  const int by_then = std::max(done[0], done[1]);
  EXPECT_TRUE(both_have_done(by_then + 100));
  stop.request_stop();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(overlaps, 0);
  keepers.clear();
  EXPECT_EQ(tracker_.BusySlots(), 0u);
}

}  // namespace
}  // namespace kiln::tracker
