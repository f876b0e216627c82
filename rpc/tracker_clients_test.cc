// Tests WorkerAnnouncer and LeaseKeeper against a scripted tracker that answers oddly or hangs.
// tracker/clients_test.cc tests them against the real tracker.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/server/grpc_server.h"
#include "base/status_testing.h"
#include "rpc/lease_keeper.h"
#include "rpc/worker_announcer.h"

namespace kiln {
namespace {

class ScriptedTracker : public v1::Tracker::Service {
 public:
  std::atomic<bool> hang = false;
  std::atomic<bool> lose = false;
  std::atomic<bool> want = false;
  std::atomic<int> announced = 0, rejoining = 0, left = 0, acquires = 0, released = 0;
  std::atomic<int> hanging = 0;
  std::atomic<int> refused = 0;
  // Time until the next announcement, and whether announcements are refused.
  std::atomic<uint32_t> next_announce_ms = 0;
  std::atomic<bool> refuse = false;

  grpc::Status Announce(grpc::ServerContext* context, const v1::AnnounceRequest* request,
                        v1::AnnounceReply* reply) override {
    Hang(context);
    if (refuse) {
      ++refused;
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "not now");
    }
    ++announced;
    rejoining += request->rejoining();
    left += request->leaving();
    // An odd answer, which must not make the client spin without a pause.
    reply->set_next_announce_ms(next_announce_ms);
    return grpc::Status::OK;
  }
  grpc::Status Acquire(grpc::ServerContext* context, const v1::AcquireRequest* request,
                       v1::AcquireReply* reply) override {
    Hang(context);
    // An odd answer: no lease, long before the wait is over.
    if (++acquires == 1) return grpc::Status::OK;
    reply->mutable_lease()->set_id("lease-" + request->request_id());
    reply->mutable_lease()->set_lease_ms(60);
    return grpc::Status::OK;
  }
  grpc::Status Renew(grpc::ServerContext* context, const v1::RenewRequest* request,
                     v1::RenewReply* reply) override {
    Hang(context);
    for (const v1::Lease& lease : request->leases()) {
      if (lose) reply->add_lost_lease_ids(lease.id());
      if (want) reply->add_wanted_lease_ids(lease.id());
    }
    reply->add_lost_lease_ids("never heard of");
    return grpc::Status::OK;
  }
  grpc::Status Release(grpc::ServerContext* context, const v1::ReleaseRequest* request,
                       v1::ReleaseReply*) override {
    Hang(context);
    released += request->lease_ids_size();
    return grpc::Status::OK;
  }

 private:
  void Hang(grpc::ServerContext* context) {
    ++hanging;
    while (hang && !context->IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    --hanging;
  }
};

template <typename Done>
bool Eventually(const Done& done) {
  for (int i = 0; i < 1'000; ++i) {
    if (done()) return true;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return false;
}

class TrackerClientsTest : public testing::Test {
 protected:
  void SetUp() override {
    GrpcServer::Options options;
    options.services = {&tracker_};
    ASSERT_OK_AND_ASSIGN(server_, GrpcServer::Start(options));
  }
  LeaseKeeper::Options KeeperOptions() const {
    LeaseKeeper::Options options;
    options.tracker = server_->address();
    options.scheduler_id = "s";
    options.key = "cuda";
    options.outage_ms = 500;
    return options;
  }
  static v1::WorkerState Worker() {
    v1::WorkerState worker;
    worker.set_id("w");
    return worker;
  }

  ScriptedTracker tracker_;
  std::unique_ptr<GrpcServer> server_;
};

TEST_F(TrackerClientsTest, AnnouncesThenRejoinsThenLeaves) {
  WorkerAnnouncer announcer({.tracker = server_->address(), .state = Worker});
  ASSERT_TRUE(announcer.WaitConnected(absl::Seconds(10)));
  EXPECT_TRUE(Eventually([&] { return tracker_.announced >= 5; }));
  announcer.Stop();
  EXPECT_EQ(tracker_.left, 1);
  EXPECT_EQ(tracker_.rejoining, tracker_.announced - 2) << "all but the first and the last";
  EXPECT_FALSE(announcer.connected());
  announcer.Stop();
  EXPECT_EQ(tracker_.left, 1);
}

TEST_F(TrackerClientsTest, AChangeOfModeIsAnnouncedAtOnce) {
  tracker_.next_announce_ms = 60'000;
  WorkerModes modes;
  WorkerAnnouncer announcer({.tracker = server_->address(), .state = Worker, .modes = &modes});
  ASSERT_TRUE(announcer.WaitConnected(absl::Seconds(10)));
  EXPECT_EQ(tracker_.announced, 1);
  modes.Set("hours", v1::WORKER_PAUSED, "night");
  EXPECT_TRUE(Eventually([&] { return tracker_.announced == 2; }));
}

// The fakes of randomness count the pauses that were drawn.
TEST_F(TrackerClientsTest, PausesBetweenFailuresAreRandom) {
  std::atomic<int> drawn = 0;
  const Random random = [&] {
    ++drawn;
    return 0.0;
  };
  tracker_.refuse = true;
  WorkerAnnouncer announcer({.tracker = server_->address(), .state = Worker, .random = random});
  EXPECT_TRUE(Eventually([&] { return tracker_.refused >= 3 && drawn >= 2; }));
  announcer.Stop();
  EXPECT_GE(tracker_.refused, drawn) << "no pause without a failure";
  drawn = 0;
  LeaseKeeper::Options options = KeeperOptions();
  options.random = random;
  LeaseKeeper keeper(options);
  ASSERT_OK_AND_ASSIGN(const LeasedWorker lease, keeper.Acquire(absl::Seconds(10), {}));
  EXPECT_EQ(drawn, 0) << "an answer without a lease is no failure";
  server_->Shutdown(absl::ZeroDuration());
  EXPECT_TRUE(Eventually([&] { return drawn >= 2; }));
}

TEST_F(TrackerClientsTest, AHangingTrackerDoesNotHoldUpTheStop) {
  tracker_.hang = true;
  const auto start = std::chrono::steady_clock::now();
  {
    WorkerAnnouncer announcer({.tracker = server_->address(), .state = Worker});
    LeaseKeeper keeper(KeeperOptions());
    std::stop_source stop;
    std::thread waiter([&] {
      EXPECT_THAT(keeper.Acquire(absl::InfiniteDuration(), stop.get_token()),
                  StatusIs(StatusCode::kCancelled, testing::_));
    });
    EXPECT_TRUE(Eventually([&] { return tracker_.hanging >= 2; })) << "one call of each";
    stop.request_stop();
    waiter.join();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(11))
      << "the call of Acquire has 12 s";
  tracker_.hang = false;
}

TEST_F(TrackerClientsTest, WantedLostAndReleasedGoThrough) {
  LeaseKeeper keeper(KeeperOptions());
  ASSERT_OK_AND_ASSIGN(LeasedWorker lease, keeper.Acquire(absl::Seconds(10), {}));
  EXPECT_EQ(tracker_.acquires, 2) << "the empty answer was asked again";
  tracker_.want = true;
  EXPECT_TRUE(Eventually([&] { return lease.wanted(); }));
  tracker_.want = false;
  EXPECT_TRUE(Eventually([&] { return !lease.wanted(); }));
  EXPECT_FALSE(lease.lost());
  tracker_.lose = true;
  EXPECT_TRUE(Eventually([&] { return lease.lost(); }));
  EXPECT_EQ(tracker_.released, 0);
  lease.Release();
  EXPECT_TRUE(Eventually([&] { return tracker_.released == 1; }));
}

TEST_F(TrackerClientsTest, ATrackerThatHangsIsAnOutage) {
  LeaseKeeper keeper(KeeperOptions());
  ASSERT_OK_AND_ASSIGN(const LeasedWorker lease, keeper.Acquire(absl::Seconds(10), {}));
  tracker_.hang = true;
  EXPECT_TRUE(Eventually([&] { return lease.lost(); }));
  EXPECT_FALSE(keeper.snapshot().tracker_reachable);
  tracker_.hang = false;
}

}  // namespace
}  // namespace kiln
