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
    worker.Announce(tracker_.address(), [this] { return trials_done_.load(); });
    return tracker_.WaitFor([](const auto&) { return true; }).worker();
  }

  FakeTracker tracker_;
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
  worker->Announce("", [] { return uint64_t{0}; });
  worker->Leave();
  worker->Shutdown();
}

}  // namespace
}  // namespace kiln
