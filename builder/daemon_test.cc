// The builder as a program: its command line, its gRPC service, its announcements, its stop.
#include <grpcpp/create_channel.h>
#include <signal.h>

#include <charconv>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/grpc_server.h"
#include "base/grpc_status.h"
#include "base/status_testing.h"
#include "base/subprocess.h"
#include "builder/test_requests.h"
#include "proto/builder.grpc.pb.h"
#include "proto/tracker.grpc.pb.h"

namespace kiln::builder {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kBuilder[] = "builder/kiln_builder";

// Keeps what was announced.
class FakeTracker : public v1::Tracker::Service {
 public:
  FakeTracker() {
    GrpcServer::Options options;
    options.services = {this};
    auto server = GrpcServer::Start(options);
    KILN_CHECK(server.ok(), "{}", Message(server.status()));
    server_ = *std::move(server);
  }
  ~FakeTracker() override { server_.reset(); }

  const std::string address() const { return server_->address(); }

  grpc::Status Announce(grpc::ServerContext*, const v1::AnnounceRequest* request,
                        v1::AnnounceReply* reply) override {
    std::lock_guard lock(mutex_);
    requests_.push_back(*request);
    reply->set_next_announce_ms(50);
    changed_.notify_all();
    return grpc::Status::OK;
  }
  // The first announcement for which `wanted` holds.
  template <typename Wanted>
  v1::AnnounceRequest WaitFor(Wanted wanted) {
    std::unique_lock lock(mutex_);
    v1::AnnounceRequest found;
    const bool there = changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      for (const auto& request : requests_) {
        if (wanted(request)) {
          found = request;
          return true;
        }
      }
      return false;
    });
    EXPECT_TRUE(there) << requests_.size() << " announcements";
    return found;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<v1::AnnounceRequest> requests_;
  std::unique_ptr<GrpcServer> server_;
};

class Daemon {
 public:
  explicit Daemon(std::vector<std::string> flags) : folder_(*TempDir::Make("builder-test")) {
    SubprocessOptions options;
    options.argv = {kBuilder, "--port-file", folder_.Join("port")};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    auto process = Subprocess::Spawn(options);
    KILN_CHECK(process.ok(), "{}", Message(process.status()));
    process_ = std::make_unique<Subprocess>(*std::move(process));
    for (int i = 0; i < 2000 && !FileExists(folder_.Join("port")); ++i) {
      Clock::Real().SleepFor(absl::Milliseconds(10));
    }
    const std::string port = *ReadFile(folder_.Join("port"));
    KILN_CHECK(port.ends_with('\n'), "port file '{}'", port);
    stub_ = v1::Builder::NewStub(grpc::CreateChannel("127.0.0.1:" + port.substr(0, port.size() - 1),
                                                     grpc::InsecureChannelCredentials()));
  }
  StatusOr<v1::BuildReply> Build(const v1::BuildRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1::BuildReply reply;
    const grpc::Status status = stub_->Build(&context, request, &reply);
    if (!status.ok()) return FromGrpc(status);
    return reply;
  }
  Subprocess& process() { return *process_; }

 private:
  TempDir folder_;
  std::unique_ptr<Subprocess> process_;
  std::unique_ptr<v1::Builder::Stub> stub_;
};

// Processes whose parent is `parent`.
std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc()) continue;
    const auto status = ReadFile(entry.path() / "status");  // gone meanwhile: no child of ours
    if (status.ok() && status->find(fmt::format("\nPPid:\t{}\n", parent)) != std::string::npos) {
      children.push_back(pid);
    }
  }
  return children;
}

bool AllGone(const std::vector<pid_t>& pids) {
  for (int i = 0; i < 1000; ++i) {
    bool gone = true;
    for (const pid_t pid : pids) {
      const auto status = ReadFile(fmt::format("/proc/{}/status", pid));
      // A zombie waits for whoever inherited it.
      gone = gone && (!status.ok() || status->find("\nState:\tZ") != std::string::npos);
    }
    if (gone) return true;
    Clock::Real().SleepFor(absl::Milliseconds(10));
  }
  return false;
}

RunResult RunBuilder(std::vector<std::string> flags) {
  SubprocessOptions options;
  options.argv = {kBuilder};
  options.argv.insert(options.argv.end(), flags.begin(), flags.end());
  auto result = RunToEnd(options, {}, absl::Seconds(60));
  KILN_CHECK(result.ok(), "{}", Message(result.status()));
  return *result;
}

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

  const std::vector<pid_t> children = ChildrenOf(daemon.process().pid());
  EXPECT_THAT(children, Not(IsEmpty()));
  daemon.process().Kill(SIGTERM);
  ASSERT_OK_AND_ASSIGN(const ExitStatus exit, daemon.process().Wait(absl::Seconds(20)));
  EXPECT_TRUE(exit.ok()) << exit.ToString();
  tracker.WaitFor([](auto& r) { return r.leaving(); });
  EXPECT_TRUE(AllGone(children));
}

TEST(DaemonTest, StopsDuringABuild) {
  Daemon daemon({"--jobs", "1", "--allow-faults"});
  std::thread caller(
      [&] { EXPECT_FALSE(daemon.Build(FaultRequest(v1::FAULT_COMPILER_HANG, 600'000)).ok()); });
  Clock::Real().SleepFor(absl::Milliseconds(300));
  daemon.process().Kill(SIGTERM);
  ASSERT_OK_AND_ASSIGN(const ExitStatus exit, daemon.process().Wait(absl::Seconds(20)));
  EXPECT_TRUE(exit.ok()) << exit.ToString();
  caller.join();
}

TEST(DaemonTest, ChildrenDieWithTheDaemon) {
  Daemon daemon({"--jobs", "2"});
  ASSERT_OK(daemon.Build(MatmulRequest("null")));
  const std::vector<pid_t> children = ChildrenOf(daemon.process().pid());
  EXPECT_THAT(children, Not(IsEmpty()));
  // The daemon alone: children have process groups of their own.
  daemon.process().Kill(SIGKILL);
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
  // The reply without the binary is still text form.
  EXPECT_THAT(result.output, Not(HasSubstr("binary: \"")));

  ASSERT_OK(WriteFile(folder.Join("b.pb"), MatmulRequest("null").SerializeAsString()));
  result = RunBuilder({"--once", folder.Join("b.pb")});
  EXPECT_TRUE(result.exit.ok()) << result.error;
  EXPECT_THAT(result.output, HasSubstr("kind: NULL_PROGRAM"));
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
