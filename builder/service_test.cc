// Tests the service over gRPC in this process, on a pool of real children.
#include "builder/service.h"

#include <grpcpp/create_channel.h>

#include <thread>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/keys/authority_folder.h"
#include "base/server/grpc_server.h"
#include "base/server/grpc_status.h"
#include "base/status_testing.h"
#include "builder/cache.h"
#include "builder/pool.h"
#include "builder/requests_testing.h"
#include "rpc/artifact_signature.h"

namespace kiln::builder {
namespace {

using testing::_;
using testing::HasSubstr;

class ServiceTest : public testing::Test {
 protected:
  explicit ServiceTest(bool allow_faults = true, std::shared_ptr<LiveKeys> keys = nullptr)
      : pool_(Options()),
        cache_(pool_, 64 << 20, "test"),
        service_(cache_, modes_, allow_faults, {}, std::move(keys)) {
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
  WorkerModes modes_;
  BuilderService service_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::Builder::Stub> stub_;
};

class NoFaultsTest : public ServiceTest {
 protected:
  NoFaultsTest() : ServiceTest(false) {}
};

// A farm with a key for a builder.
struct Farm {
  Farm() { KILN_CHECK(authority.Issue({"box1", Role::kWork}, 10, false).ok()); }
  std::shared_ptr<LiveKeys> Keys() const {
    return *LiveKeys::Open(authority.FolderOf("box1"), Clock::Real());
  }

  const TempDir temporary = *TempDir::Make("service-test");
  AuthorityFolder authority =
      *AuthorityFolder::Init(temporary.Join("keys"), {&Clock::Real(), nullptr});
};

class SigningServiceTest : public Farm, public ServiceTest {
 protected:
  SigningServiceTest() : ServiceTest(true, Keys()) {}
};

TEST_F(SigningServiceTest, SignsForTheTrialWhateverTheCacheHas) {
  ArtifactCheck check(Keys(), {"llvm"}, Clock::Real());
  v1::BuildRequest request = MatmulRequest("llvm");
  for (const char* trial : {"job/1", "job/2"}) {
    request.set_trial(trial);
    ASSERT_OK_AND_ASSIGN(const v1::BuildReply reply, Build(request));
    EXPECT_EQ(reply.cached(), request.trial() == "job/2");
    EXPECT_EQ(reply.artifact().target(), "llvm");
    EXPECT_OK(check.Check(reply.artifact(), trial, "artifact"));
  }
  request.clear_trial();
  ASSERT_OK_AND_ASSIGN(const v1::BuildReply unnamed, Build(request));
  EXPECT_TRUE(unnamed.cached());
  EXPECT_TRUE(unnamed.artifact().signature().empty());
}

TEST_F(ServiceTest, SignsNothingWithoutKeys) {
  v1::BuildRequest request = MatmulRequest("llvm");
  request.set_trial("job/1");
  ASSERT_OK_AND_ASSIGN(const v1::BuildReply reply, Build(request));
  EXPECT_TRUE(reply.artifact().signature().empty());
}

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

// The build would go on for ten minutes.
TEST_F(ServiceTest, APauseStopsABuild) {
  std::thread caller([&] {
    EXPECT_THAT(
        Build(FaultRequest(v1::FAULT_COMPILER_HANG, 600'000)),
        StatusIs(StatusCode::kUnavailable, "the worker takes no trials now: paused by ada"));
  });
  while (cache_.stats().misses == 0) std::this_thread::yield();  // until the build has begun
  modes_.Ask(v1::WORKER_PAUSED, "ada");
  caller.join();
  EXPECT_THAT(Build(MatmulRequest("null")), StatusIs(StatusCode::kUnavailable, _));
  modes_.Ask(v1::WORKER_DRAINS, "ada");
  // A lease may be in use yet.
  EXPECT_OK(Build(MatmulRequest("null")));
  modes_.Ask(v1::WORKER_SERVES, "ada");
  EXPECT_OK(Build(MatmulRequest("llvm")));
}

TEST_F(NoFaultsTest, FaultsAreRefused) {
  EXPECT_THAT(Build(FaultRequest(v1::FAULT_COMPILER_CRASH)),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("--allow-faults")));
  EXPECT_OK(Build(MatmulRequest("null")));
  EXPECT_EQ(pool_.stats().children_lost, 0);
}

}  // namespace
}  // namespace kiln::builder
