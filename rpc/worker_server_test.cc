#include "rpc/worker_server.h"

#include <atomic>

#include "base/server/net.h"
#include "base/status_testing.h"
#include "rpc/tracker_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;

class WorkerServerTest : public testing::Test {
 protected:
  StatusOr<std::unique_ptr<WorkerServer>> Start(const std::string& listen,
                                                const std::string& advertise = "") {
    WorkerServer::Options options;
    options.listen = listen;
    options.advertise = advertise;
    options.service = &service_;
    options.state.set_id("w");
    return WorkerServer::Start(std::move(options));
  }
  // Returns the state that a worker announces when it has just started.
  v1::WorkerState Announced(WorkerServer& worker) {
    worker.Announce(tracker_.address(), modes_,
                    [this](v1::WorkerState& state) { state.set_trials_done(trials_done_); });
    return tracker_.WaitFor([](const auto&) { return true; }).worker();
  }

  FakeTracker tracker_;
  WorkerModes modes_;
  // Any service will do.
  v1::Tracker::Service service_;
  std::atomic<uint64_t> trials_done_ = 0;
};

TEST_F(WorkerServerTest, AnnouncesWhatItHasDoneAndLeaves) {
  ASSERT_OK_AND_ASSIGN(const auto worker, Start("127.0.0.1:0"));
  const v1::WorkerState announced = Announced(*worker);
  EXPECT_EQ(announced.id(), "w");
  EXPECT_EQ(announced.address(), worker->address());
  EXPECT_EQ(announced.address(), fmt::format("127.0.0.1:{}", worker->port()));
  trials_done_ = 2;
  tracker_.WaitFor([](const auto& request) { return request.worker().trials_done() == 2; });
  worker->Leave();
  tracker_.WaitFor([](const auto& request) { return request.leaving(); });
  worker->Shutdown();
  // The port is free again.
  EXPECT_OK(Start(announced.address()).status());
}

TEST_F(WorkerServerTest, TheModesTravel) {
  ASSERT_OK_AND_ASSIGN(const auto worker, Start("127.0.0.1:0"));
  EXPECT_EQ(Announced(*worker).mode(), v1::WORKER_SERVES);
  tracker_.Ask(v1::WORKER_DRAINS, "ada");
  const v1::WorkerState drained =
      tracker_.WaitFor([](const auto& request) { return request.worker().mode() != 0; }).worker();
  EXPECT_EQ(drained.mode(), v1::WORKER_DRAINS);
  EXPECT_EQ(drained.mode_reason(), "drained by ada");
  EXPECT_EQ(drained.asked_mode(), v1::WORKER_DRAINS);
  EXPECT_EQ(drained.asked_by(), "ada");
  modes_.Set("hours", v1::WORKER_PAUSED, "night");
  const v1::WorkerState paused =
      tracker_
          .WaitFor([](const auto& request) { return request.worker().mode() == v1::WORKER_PAUSED; })
          .worker();
  EXPECT_EQ(paused.mode_reason(), "night");
  EXPECT_EQ(paused.asked_mode(), v1::WORKER_DRAINS);
}

TEST_F(WorkerServerTest, AllAddressesAreAnnouncedAsThisMachine) {
  ASSERT_OK_AND_ASSIGN(const auto worker, Start("0.0.0.0:0"));
  EXPECT_EQ(Announced(*worker).address(), fmt::format("{}:{}", HostName(), worker->port()));
}

TEST_F(WorkerServerTest, AnAddressToReachItAtGoesBeforeItsOwn) {
  ASSERT_OK_AND_ASSIGN(const auto worker, Start("127.0.0.1:0", "gateway:9300"));
  EXPECT_EQ(Announced(*worker).address(), "gateway:9300");
}

TEST_F(WorkerServerTest, RefusesWhatIsNoAddress) {
  EXPECT_THAT(Start("nowhere").status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("nowhere")));
  // Nothing could connect to port 0.
  EXPECT_THAT(Start("127.0.0.1:0", "gateway:0").status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("gateway:0")));
}

TEST_F(WorkerServerTest, NeedsNoTracker) {
  ASSERT_OK_AND_ASSIGN(const auto worker, Start("127.0.0.1:0"));
  worker->Announce("", modes_, [](v1::WorkerState&) {});
  worker->AnnounceNow();
  worker->Leave();
  worker->Shutdown();
}

}  // namespace
}  // namespace kiln
