// Tests the service over gRPC in this process, on a pool of real children.
#include "builder/service.h"

#include <grpcpp/create_channel.h>

#include <thread>

#include "base/clock.h"
#include "base/server/grpc_server.h"
#include "base/server/grpc_status.h"
#include "base/status_testing.h"
#include "builder/cache.h"
#include "builder/pool.h"
#include "builder/requests_testing.h"

namespace kiln::builder {
namespace {

using testing::_;
using testing::HasSubstr;

class ServiceTest : public testing::Test {
 protected:
  explicit ServiceTest(bool allow_faults = true)
      : pool_(Options()), cache_(pool_, 64 << 20, "test"), service_(cache_, allow_faults) {
    GrpcServer::Options options;
    options.services = {&service_};
    auto server = GrpcServer::Start(options);
    KILN_CHECK(server.ok(), "{}", Message(server.status()));
    server_ = *std::move(server);
    stub_ = v1::Builder::NewStub(
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  }

  static PoolOptions Options() {
    PoolOptions options;
    options.child_command = {"builder/kiln_builder", "--child"};
    options.jobs = 2;
    return options;
  }
  StatusOr<v1::BuildReply> Build(const v1::BuildRequest& request,
                                 absl::Duration timeout = absl::Seconds(60)) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
    v1::BuildReply reply;
    const grpc::Status status = stub_->Build(&context, request, &reply);
    if (!status.ok()) return FromGrpc(status);
    return reply;
  }

  Pool pool_;
  BuildCache cache_;
  BuilderService service_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::Builder::Stub> stub_;
};

class NoFaultsTest : public ServiceTest {
 protected:
  NoFaultsTest() : ServiceTest(false) {}
};

TEST_F(ServiceTest, BuildsAndCaches) {
  ASSERT_OK_AND_ASSIGN(const v1::BuildReply built, Build(MatmulRequest("llvm")));
  EXPECT_EQ(built.error(), v1::NO_ERROR) << built.message();
  EXPECT_FALSE(built.cached());
  EXPECT_GT(built.build_s(), 0);
  ASSERT_OK_AND_ASSIGN(v1::BuildReply again, Build(MatmulRequest("llvm")));
  EXPECT_TRUE(again.cached());
  EXPECT_EQ(again.build_s(), 0);
  EXPECT_EQ(again.artifact().SerializeAsString(), built.artifact().SerializeAsString());
  ASSERT_OK_AND_ASSIGN(again, Build(MatmulRequest("llvm", "[[")));
  ASSERT_OK_AND_ASSIGN(again, Build(MatmulRequest("llvm", "[[")));
  EXPECT_EQ(again.error(), v1::INSTANTIATION_ERROR);
  EXPECT_TRUE(again.cached());
  EXPECT_EQ(service_.builds_done(), 4);
}

TEST_F(ServiceTest, BadRequests) {
  EXPECT_THAT(Build(MatmulRequest("vax")),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("unknown target 'vax'")));
  v1::BuildRequest request = MatmulRequest("null");
  request.set_dag("nonsense");
  EXPECT_THAT(Build(request), StatusIs(StatusCode::kInvalidArgument, HasSubstr("dag: ")));
}

TEST_F(ServiceTest, CrashesAndTimeoutsAreRepliesAndNotCached) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK_AND_ASSIGN(v1::BuildReply reply, Build(FaultRequest(v1::FAULT_COMPILER_CRASH)));
    EXPECT_EQ(reply.error(), v1::COMPILE_HOST_ERROR);
    EXPECT_FALSE(reply.cached());
    ASSERT_OK_AND_ASSIGN(reply, Build(FaultRequest(v1::FAULT_COMPILER_HANG, 100)));
    EXPECT_EQ(reply.error(), v1::BUILD_TIMEOUT_ERROR);
    EXPECT_FALSE(reply.cached());
  }
  EXPECT_EQ(cache_.stats().entries, 0);
}

TEST_F(ServiceTest, AbandonedCallsFreeTheirPlaces) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(Build(FaultRequest(v1::FAULT_COMPILER_HANG, 600'000), absl::Milliseconds(100)),
                StatusIs(StatusCode::kDeadlineExceeded, _));
  }
  EXPECT_OK(Build(MatmulRequest("null")));
}

TEST_F(ServiceTest, StopEndsWhatRuns) {
  std::thread caller([&] {
    EXPECT_THAT(Build(FaultRequest(v1::FAULT_COMPILER_HANG, 600'000)),
                StatusIs(StatusCode::kCancelled, _));
  });
  while (cache_.stats().misses == 0) std::this_thread::yield();  // until the build has begun
  service_.Stop();
  caller.join();
}

TEST_F(NoFaultsTest, FaultsAreRefused) {
  EXPECT_THAT(Build(FaultRequest(v1::FAULT_COMPILER_CRASH)),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("--allow-faults")));
  EXPECT_OK(Build(MatmulRequest("null")));
  EXPECT_EQ(pool_.stats().children_lost, 0);
}

}  // namespace
}  // namespace kiln::builder
