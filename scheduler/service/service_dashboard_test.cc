// Tests the call that lets a browser into the pages.
#include "base/server/grpc_server.h"
#include "base/server/grpc_status.h"
#include "base/status_testing.h"
#include "rpc/channel.h"
#include "scheduler/dispatch/workers_testing.h"
#include "scheduler/service/service.h"
#include "store/memory_store.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

// Asks a scheduler whose pages have this door.
StatusOr<v1::OpenDashboardReply> Ask(const DashboardDoor& door) {
  EventHub events;
  const auto store = store::NewMemoryStore();
  FakeCluster cluster;
  Jobs::Options options;
  options.dispatch = QuickDispatch();
  Jobs jobs(*store, cluster.factory(), events, options);
  SchedulerService service(*store, jobs, events, SchedulerService::Options{.open_dashboard = door});
  auto server = GrpcServer::Start({.services = {&service}});
  KILN_CHECK(server.ok(), "{}", server.status().ToString());
  const auto stub = v1::Scheduler::NewStub(MakeChannel((*server)->address()));
  grpc::ClientContext context;
  v1::OpenDashboardReply reply;
  const grpc::Status status = stub->OpenDashboard(&context, {}, &reply);
  service.Stop();
  (*server)->Shutdown(absl::Seconds(1));
  if (!status.ok()) return FromGrpc(status);
  return reply;
}

TEST(ServiceDashboardTest, GivesTheWayIn) {
  const auto reply = Ask([](const std::optional<Identity>& caller) {
    // There are no certificates in this farm.
    EXPECT_FALSE(caller.has_value());
    v1::OpenDashboardReply door;
    door.set_port(9291);
    door.set_token("ab12");
    return door;
  });
  ASSERT_OK(reply);
  EXPECT_EQ(reply->port(), 9291u);
  EXPECT_EQ(reply->token(), "ab12");
}

TEST(ServiceDashboardTest, SaysThatThereAreNoPages) {
  EXPECT_THAT(Ask(nullptr),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("--http-port off")));
}

}  // namespace
}  // namespace kiln::scheduler
