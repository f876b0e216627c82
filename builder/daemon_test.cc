// Tests the builder as a program: its command line, its gRPC service, its announcements, its stop.
#include <chrono>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/process/process_tree.h"
#include "base/server/daemon_testing.h"
#include "base/server/grpc_status.h"
#include "base/status_testing.h"
#include "builder/requests_testing.h"
#include "proto/builder.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/tracker_testing.h"

namespace kiln::builder {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kBuilder[] = "builder/kiln_builder";

// A builder daemon that serves from the start.
class Daemon : public DaemonProcess {
 public:
  explicit Daemon(std::vector<std::string> flags) : DaemonProcess(kBuilder, std::move(flags)) {
    const Status started = Start();
    KILN_CHECK(started.ok(), "{}", Message(started));
    stub_ = v1::Builder::NewStub(MakeChannel(address()));
  }
  StatusOr<v1::BuildReply> Build(const v1::BuildRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1::BuildReply reply;
    const grpc::Status status = stub_->Build(&context, request, &reply);
    if (!status.ok()) return FromGrpc(status);
    return reply;
  }

 private:
  std::unique_ptr<v1::Builder::Stub> stub_;
};

RunResult RunBuilder(const std::vector<std::string>& flags) { return RunProgram(kBuilder, flags); }

TEST(DaemonTest, ServesAnnouncesAndStops) {
  FakeTracker tracker;
  Daemon daemon({"--jobs", "2", "--tracker", tracker.address(), "--allow-faults"});
  const v1::WorkerState worker = tracker.WaitFor([](auto&) { return true; }).worker();
  EXPECT_EQ(worker.kind(), v1::BUILDER);
  EXPECT_EQ(worker.slots(), 2);
  EXPECT_THAT(worker.keys(), testing::IsSupersetOf({"llvm", "null"}));
  EXPECT_THAT(worker.address(), HasSubstr("127.0.0.1:"));
  EXPECT_THAT(worker.id(), Not(""));

  ASSERT_OK_AND_ASSIGN(v1::BuildReply reply, daemon.Build(MatmulRequest("llvm")));
  EXPECT_EQ(reply.error(), v1::NO_ERROR) << reply.message();
  ASSERT_OK_AND_ASSIGN(reply, daemon.Build(FaultRequest(v1::FAULT_COMPILER_CRASH)));
  EXPECT_EQ(reply.message(), "compiler process killed by signal 6 (Aborted)");
  EXPECT_EQ(tracker.WaitFor([](auto& r) { return r.worker().trials_done() == 2; }).worker().id(),
            worker.id());

  const std::vector<pid_t> children = ChildrenOf(daemon.pid());
  EXPECT_THAT(children, Not(IsEmpty()));
  ASSERT_OK_AND_ASSIGN(const ExitStatus exit, daemon.Stop());
  EXPECT_TRUE(exit.ok()) << exit.ToString();
  tracker.WaitFor([](auto& r) { return r.leaving(); });
  EXPECT_TRUE(AllGone(children));
}

TEST(DaemonTest, StopsDuringABuild) {
  Daemon daemon({"--jobs", "1", "--allow-faults"});
  std::thread caller(
      [&] { EXPECT_FALSE(daemon.Build(FaultRequest(v1::FAULT_COMPILER_HANG, 600'000)).ok()); });
  Clock::Real().SleepFor(absl::Milliseconds(300));
  ASSERT_OK_AND_ASSIGN(const ExitStatus exit, daemon.Stop());
  EXPECT_TRUE(exit.ok()) << exit.ToString();
  caller.join();
}

TEST(DaemonTest, ChildrenDieWithTheDaemon) {
  Daemon daemon({"--jobs", "2"});
  ASSERT_OK(daemon.Build(MatmulRequest("null")));
  const std::vector<pid_t> children = ChildrenOf(daemon.pid());
  EXPECT_THAT(children, Not(IsEmpty()));
  daemon.Kill();
  EXPECT_TRUE(AllGone(children));
}

TEST(DaemonTest, RefusesFaultsUnlessTold) {
  Daemon daemon({"--jobs", "1"});
  EXPECT_THAT(daemon.Build(FaultRequest(v1::FAULT_NULL_STORE)),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("--allow-faults")));
}

TEST(OnceTest, BuildsARequestFromAFile) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("builder-once"));
  const std::string object = folder.Join("artifact.so");
  ASSERT_OK(WriteFile(folder.Join("a.txtpb"), MatmulRequest("llvm").DebugString()));
  RunResult result = RunBuilder({"--once", folder.Join("a.txtpb"), "-o", object});
  EXPECT_TRUE(result.exit.ok()) << result.error;
  ASSERT_OK_AND_ASSIGN(const std::string binary, ReadFile(object));
  EXPECT_EQ(binary.substr(1, 3), "ELF");
  EXPECT_THAT(result.output, AllOf(HasSubstr(fmt::format("# binary: {} bytes\n", binary.size())),
                                   HasSubstr("digest: "), HasSubstr("symbol: \"kiln_entry\""),
                                   Not(HasSubstr("ELF"))));
  // The reply without the binary is still in text form.
  EXPECT_THAT(result.output, Not(HasSubstr("binary: \"")));

  ASSERT_OK(WriteFile(folder.Join("b.pb"), MatmulRequest("null").SerializeAsString()));
  result = RunBuilder({"--once", folder.Join("b.pb")});
  EXPECT_TRUE(result.exit.ok()) << result.error;
  EXPECT_THAT(result.output, HasSubstr("device: \"null\""));
}

TEST(OnceTest, FailedBuildsWriteNoFile) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("builder-once"));
  ASSERT_OK(WriteFile(folder.Join("a.txtpb"), MatmulRequest("llvm", "[[").DebugString()));
  RunResult result = RunBuilder({"--once", folder.Join("a.txtpb")});
  EXPECT_TRUE(result.exit.ok()) << result.error;
  EXPECT_THAT(result.output, HasSubstr("error: INSTANTIATION_ERROR"));
  result = RunBuilder({"--once", folder.Join("a.txtpb"), "-o", folder.Join("a.so")});
  EXPECT_EQ(result.exit.code, 1);
  EXPECT_THAT(result.error, HasSubstr("a.so was not written"));
  EXPECT_FALSE(FileExists(folder.Join("a.so")));
}

TEST(OnceTest, RefusesFilesThatAreNoRequest) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("builder-once"));
  ASSERT_OK(WriteFile(folder.Join("bad.pb"), "\xff\xff\xff"));
  RunResult result = RunBuilder({"--once", folder.Join("bad.pb")});
  EXPECT_EQ(result.exit.code, 1);
  EXPECT_THAT(result.error, HasSubstr("not a BuildRequest"));
  ASSERT_OK(WriteFile(folder.Join("vax.txtpb"), MatmulRequest("vax").DebugString()));
  result = RunBuilder({"--once", folder.Join("vax.txtpb")});
  EXPECT_EQ(result.exit.code, 1);
  EXPECT_THAT(result.error, HasSubstr("vax"));
}

TEST(FlagsTest, HelpAndBadFlags) {
  const RunResult help = RunBuilder({"--help"});
  EXPECT_TRUE(help.exit.ok());
  for (const char* flag : {"--listen", "--tracker", "--jobs", "--cache-mib", "--log-level",
                           "--port-file", "--allow-faults", "--once"}) {
    EXPECT_THAT(help.output, HasSubstr(flag));
  }
  EXPECT_NE(RunBuilder({"--jobs", "-1"}).exit.code, 0);
  EXPECT_NE(RunBuilder({"--cache-mib", "-1"}).exit.code, 0);
  EXPECT_NE(RunBuilder({"--no-such-flag"}).exit.code, 0);
  EXPECT_NE(RunBuilder({"-o", "a.so"}).exit.code, 0);
  EXPECT_THAT(RunBuilder({"--log-level", "loud"}).error, HasSubstr("loud"));
  EXPECT_THAT(RunBuilder({"--listen", "nowhere"}).error, HasSubstr("nowhere"));
  EXPECT_THAT(RunBuilder({"--tracker", "nowhere"}).error, HasSubstr("nowhere"));
  EXPECT_THAT(RunBuilder({"--port-file", "/no/such/folder/port"}).error, HasSubstr("/no/such"));
}

}  // namespace
}  // namespace kiln::builder
