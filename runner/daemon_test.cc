// The runner as a program: its command line, its gRPC service, its announcements, its stop.
#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>
#include <signal.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/grpc_server.h"
#include "base/grpc_status.h"
#include "base/status_testing.h"
#include "base/subprocess.h"
#include "proto/runner.grpc.pb.h"
#include "proto/tracker.grpc.pb.h"

namespace kiln::runner {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kRunner[] = "runner/kiln_runner";

// Keeps what was announced.
class FakeTracker : public v1::Tracker::Service {
 public:
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
};

class Daemon {
 public:
  explicit Daemon(std::vector<std::string> flags) : folder_(*TempDir::Make("runner-test")) {
    SubprocessOptions options;
    options.argv = {kRunner, "--port-file", folder_.Join("port")};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    auto process = Subprocess::Spawn(options);
    KILN_CHECK(process.ok(), "{}", Message(process.status()));
    process_ = std::make_unique<Subprocess>(*std::move(process));
    for (int i = 0; i < 2000 && !FileExists(folder_.Join("port")); ++i) {
      Clock::Real().SleepFor(absl::Milliseconds(10));
    }
    const std::string port = *ReadFile(folder_.Join("port"));
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    stub_ = v1::Runner::NewStub(
        grpc::CreateCustomChannel("127.0.0.1:" + port.substr(0, port.size() - 1),
                                  grpc::InsecureChannelCredentials(), arguments));
  }
  StatusOr<v1::MeasureReply> Measure(const v1::MeasureRequest& request,
                                     absl::Duration timeout = absl::Seconds(60)) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
    v1::MeasureReply reply;
    const grpc::Status status = stub_->Measure(&context, request, &reply);
    if (!status.ok()) return FromGrpc(status);
    return reply;
  }
  Subprocess& process() { return *process_; }

 private:
  TempDir folder_;
  std::unique_ptr<Subprocess> process_;
  std::unique_ptr<v1::Runner::Stub> stub_;
};

v1::Artifact Program(const std::string& name) {
  v1::Artifact artifact;
  artifact.set_binary(*ReadFile("runner/testdata/" + name + ".so"));
  artifact.set_digest(name);
  for (const char* arg : {"a", "b", "out", "scratch"}) {
    v1::ArgSpec& spec = *artifact.mutable_plan()->add_args();
    spec.set_name(arg);
    spec.set_dtype("float32");
    spec.add_shape(24);
    if (spec.name() == "out") spec.set_role(v1::ArgSpec::OUTPUT);
    if (spec.name() == "scratch") spec.set_role(v1::ArgSpec::WORKSPACE);
  }
  return artifact;
}

v1::MeasureRequest Request(const std::string& name) {
  v1::MeasureRequest request;
  *request.mutable_artifact() = Program(name);
  *request.mutable_reference() = Program("correct");
  request.set_reference_digest("correct");
  return request;
}

RunResult RunRunner(std::vector<std::string> flags) {
  SubprocessOptions options;
  options.argv = {kRunner};
  options.argv.insert(options.argv.end(), flags.begin(), flags.end());
  auto result = RunToEnd(options, {}, absl::Seconds(60));
  KILN_CHECK(result.ok(), "{}", Message(result.status()));
  return *result;
}

TEST(DaemonTest, ServesAnnouncesAndStops) {
  FakeTracker tracker;
  GrpcServer::Options server_options;
  server_options.services = {&tracker};
  ASSERT_OK_AND_ASSIGN(auto server, GrpcServer::Start(server_options));
  Daemon daemon({"--threads", "2", "--tracker", server->address()});

  const v1::WorkerState worker = tracker.WaitFor([](auto&) { return true; }).worker();
  EXPECT_EQ(worker.kind(), v1::RUNNER);
  EXPECT_EQ(worker.slots(), 1);
  EXPECT_THAT(worker.keys(),
              AllOf(SizeIs(3), Contains("llvm"), Contains("cpu"), Contains(HasSubstr("llvm/"))));
  EXPECT_THAT(worker.target(), AllOf(HasSubstr("llvm -mcpu=x86-64"), HasSubstr("-num-cores=2")));
  EXPECT_EQ(worker.hardware().num_cores(), 2);
  EXPECT_THAT(worker.address(), HasSubstr("127.0.0.1:"));

  ASSERT_OK_AND_ASSIGN(v1::MeasureReply reply, daemon.Measure(Request("correct")));
  EXPECT_EQ(reply.result().error(), v1::NO_ERROR) << reply.result().message();
  EXPECT_EQ(reply.result().runner(), worker.id());
  EXPECT_EQ(reply.result().device(), worker.device());
  ASSERT_OK_AND_ASSIGN(reply, daemon.Measure(Request("null_store")));
  EXPECT_EQ(reply.result().error(), v1::RUNTIME_DEVICE_ERROR);
  v1::MeasureRequest unknown = Request("correct");
  unknown.clear_reference();
  unknown.set_reference_digest("other");
  EXPECT_THAT(daemon.Measure(unknown),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("not known")));
  EXPECT_EQ(tracker.WaitFor([](auto& r) { return r.worker().trials_done() == 2; }).worker().id(),
            worker.id());

  daemon.process().Kill(SIGTERM);
  ASSERT_OK_AND_ASSIGN(const ExitStatus exit, daemon.process().Wait(absl::Seconds(20)));
  EXPECT_TRUE(exit.ok()) << exit.ToString();
  tracker.WaitFor([](auto& r) { return r.leaving(); });
}

TEST(DaemonTest, AbandonedCallFreesTheDevice) {
  Daemon daemon({"--threads", "1"});
  ASSERT_OK(daemon.Measure(Request("correct")));
  v1::MeasureRequest hang = Request("infinite_loop");
  hang.mutable_options()->set_timeout_ms(600'000);
  EXPECT_THAT(daemon.Measure(hang, absl::Milliseconds(300)),
              StatusIs(StatusCode::kDeadlineExceeded, testing::_));
  ASSERT_OK_AND_ASSIGN(const v1::MeasureReply reply, daemon.Measure(Request("correct")));
  EXPECT_EQ(reply.result().error(), v1::NO_ERROR);
}

TEST(DaemonTest, StopsDuringATrial) {
  Daemon daemon({"--threads", "1"});
  ASSERT_OK(daemon.Measure(Request("correct")));
  v1::MeasureRequest hang = Request("infinite_loop");
  hang.mutable_options()->set_timeout_ms(600'000);
  std::thread caller([&] { EXPECT_FALSE(daemon.Measure(hang).ok()); });
  Clock::Real().SleepFor(absl::Milliseconds(200));
  daemon.process().Kill(SIGTERM);
  ASSERT_OK_AND_ASSIGN(const ExitStatus exit, daemon.process().Wait(absl::Seconds(20)));
  EXPECT_TRUE(exit.ok()) << exit.ToString();
  caller.join();
}

// The children of any of its threads.
std::vector<std::string> ChildrenOf(pid_t pid) {
  std::vector<std::string> children;
  const std::string tasks = fmt::format("/proc/{}/task", pid);
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::istringstream list(ReadFile(task.path() / "children").value_or(""));
    for (std::string child; list >> child;) children.push_back(child);
  }
  return children;
}

bool IsGone(const std::string& pid) {
  const auto stat = ReadFile("/proc/" + pid + "/stat");
  return !stat.ok() || stat->find(") Z ") != std::string::npos;
}

TEST(DaemonTest, KilledDaemonLeavesNoChildBehind) {
  Daemon daemon({"--threads", "1"});
  ASSERT_OK(daemon.Measure(Request("correct")));
  v1::MeasureRequest hang = Request("infinite_loop");
  hang.mutable_options()->set_timeout_ms(600'000);
  std::thread caller([&] { EXPECT_FALSE(daemon.Measure(hang).ok()); });
  Clock::Real().SleepFor(absl::Milliseconds(200));
  const std::vector<std::string> children = ChildrenOf(daemon.process().pid());
  EXPECT_THAT(children, SizeIs(2));
  daemon.process().Kill(SIGKILL);
  ASSERT_OK(daemon.process().Wait());
  caller.join();
  for (const std::string& child : children) {
    for (int i = 0; i < 1000 && !IsGone(child); ++i) Clock::Real().SleepFor(absl::Milliseconds(10));
    EXPECT_TRUE(IsGone(child)) << child;
  }
}

TEST(DaemonTest, NullDeviceAnnouncesItself) {
  FakeTracker tracker;
  GrpcServer::Options server_options;
  server_options.services = {&tracker};
  ASSERT_OK_AND_ASSIGN(auto server, GrpcServer::Start(server_options));
  Daemon daemon({"--device", "null", "--tracker", server->address()});
  const v1::WorkerState worker = tracker.WaitFor([](auto&) { return true; }).worker();
  EXPECT_THAT(worker.keys(), ElementsAre("null"));
  EXPECT_EQ(worker.target(), "null");
  v1::MeasureRequest request;
  request.mutable_artifact()->set_kind(v1::Artifact::NULL_PROGRAM);
  ASSERT_OK_AND_ASSIGN(const v1::MeasureReply reply, daemon.Measure(request));
  EXPECT_THAT(reply.result().costs_s(), SizeIs(1));
}

TEST(OnceTest, MeasuresARequestFromAFile) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("runner-once"));
  ASSERT_OK(WriteFile(folder.Join("right.pb"), Request("correct").SerializeAsString()));
  RunResult result = RunRunner({"--once", folder.Join("right.pb")});
  EXPECT_TRUE(result.exit.ok()) << result.error;
  EXPECT_THAT(result.output, AllOf(HasSubstr("costs_s: "), HasSubstr("reference_cost_s: ")));

  ASSERT_OK(WriteFile(folder.Join("wrong.txtpb"), Request("wrong_answer").DebugString()));
  result = RunRunner({"--once", folder.Join("wrong.txtpb")});
  EXPECT_TRUE(result.exit.ok()) << result.error;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("error: WRONG_ANSWER_ERROR"), HasSubstr("element [9]")));
}

TEST(OnceTest, RefusesFilesThatAreNoRequest) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("runner-once"));
  ASSERT_OK(WriteFile(folder.Join("bad.pb"), "\xff\xff\xff"));
  const RunResult result = RunRunner({"--once", folder.Join("bad.pb")});
  EXPECT_EQ(result.exit.code, 1);
  EXPECT_THAT(result.error, HasSubstr("not a MeasureRequest"));
}

TEST(FlagsTest, SaysWhenThereIsNoGpu) {
  // Also where there is a driver.
  setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
  for (const char* device : {"cuda", "cuda:0", "cuda:GPU-1"}) {
    const RunResult result = RunRunner({"--device", device});
    EXPECT_EQ(result.exit.code, 1);
    EXPECT_THAT(result.error, HasSubstr("NVIDIA driver"));
  }
  unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(FlagsTest, HelpAndBadFlags) {
  EXPECT_THAT(RunRunner({"--help"}).output, AllOf(HasSubstr("--tracker"), HasSubstr("--once")));
  EXPECT_NE(RunRunner({"--device", "tpu"}).exit.code, 0);
  EXPECT_NE(RunRunner({"--threads", "-1"}).exit.code, 0);
  EXPECT_THAT(RunRunner({"--log-level", "loud"}).error, HasSubstr("loud"));
  EXPECT_THAT(RunRunner({"--listen", "nowhere"}).error, HasSubstr("nowhere"));
  EXPECT_THAT(RunRunner({"--tracker", "nowhere"}).error, HasSubstr("nowhere"));
}

}  // namespace
}  // namespace kiln::runner
