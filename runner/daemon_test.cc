// Tests the runner as a program: its command line, its gRPC service, its announcements, its stop.
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/process/namespaces.h"
#include "base/process/process_tree.h"
#include "base/process/sandbox.h"
#include "base/server/daemon_testing.h"
#include "base/server/grpc_status.h"
#include "base/status_testing.h"
#include "proto/runner.grpc.pb.h"
#include "rpc/artifact_digest.h"
#include "rpc/channel.h"
#include "rpc/tracker_testing.h"
#include "rpc/yield_reply.h"
#include "runner/device_files.h"

namespace kiln::runner {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kRunner[] = "runner/kiln_runner";

// A runner daemon that serves from the start.
class Daemon : public DaemonProcess {
 public:
  explicit Daemon(std::vector<std::string> flags) : DaemonProcess(kRunner, std::move(flags)) {
    const Status started = Start();
    KILN_CHECK(started.ok(), "{}", Message(started));
    stub_ = v1::Runner::NewStub(MakeChannel(address()));
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

  v1::Runner::Stub& stub() { return *stub_; }

 private:
  std::unique_ptr<v1::Runner::Stub> stub_;
};

v1::Artifact Program(const std::string& name) {
  v1::Artifact artifact;
  artifact.set_device("cpu");
  artifact.set_binary(*ReadFile("runner/testdata/" + name + ".so"));
  for (const char* arg : {"a", "b", "out", "scratch"}) {
    v1::ArgSpec& spec = *artifact.mutable_plan()->add_args();
    spec.set_name(arg);
    spec.set_dtype("float32");
    spec.add_shape(24);
    if (spec.name() == "out") spec.set_role(v1::ArgSpec::OUTPUT);
    if (spec.name() == "scratch") spec.set_role(v1::ArgSpec::WORKSPACE);
  }
  artifact.set_digest(DigestOf(artifact));
  return artifact;
}

v1::MeasureRequest Request(const std::string& name) {
  v1::MeasureRequest request;
  *request.mutable_artifact() = Program(name);
  *request.mutable_reference() = Program("correct");
  request.set_reference_digest(request.reference().digest());
  return request;
}

RunResult RunRunner(const std::vector<std::string>& flags) { return RunProgram(kRunner, flags); }

TEST(DaemonTest, ServesAnnouncesAndStops) {
  FakeTracker tracker;
  Daemon daemon({"--threads", "2", "--tracker", tracker.address()});

  const v1::WorkerState worker = tracker.WaitFor([](auto&) { return true; }).worker();
  EXPECT_EQ(worker.kind(), v1::RUNNER);
  EXPECT_EQ(worker.slots(), 1);
  EXPECT_THAT(worker.keys(),
              AllOf(SizeIs(3), Contains("llvm"), Contains("cpu"), Contains(HasSubstr("llvm/"))));
  EXPECT_THAT(worker.target(), AllOf(HasSubstr(" -mcpu="), HasSubstr("-num-cores=2")));
  EXPECT_EQ(worker.hardware().num_cores(), 2);
  EXPECT_EQ(worker.device_model().cores(), 2);
  EXPECT_EQ(worker.device_model().name(), worker.device());
  EXPECT_THAT(worker.address(), HasSubstr("127.0.0.1:"));
  EXPECT_THAT(worker.sandbox(), Contains("no new privileges"));
  const Status namespaces = TryNamespaces();
  if (namespaces.ok()) {
    EXPECT_THAT(worker.sandbox(), Contains("namespaces"));
  } else {
    EXPECT_THAT(worker.sandbox_gaps(), Contains(HasSubstr("namespaces do not work here")));
  }

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

  ASSERT_OK_AND_ASSIGN(const ExitStatus exit, daemon.Stop());
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

// Waits until the daemon has no children; false after ten seconds.
bool HasNoChildren(const Daemon& daemon) {
  for (int i = 0; i < 1000; ++i) {
    if (ChildrenOf(daemon.pid()).empty()) return true;
    Clock::Real().SleepFor(absl::Milliseconds(10));
  }
  return false;
}

// The worker hears with its next announcement. The trial's caller learns that nothing has failed.
// The trial would go on for ten minutes.
TEST(DaemonTest, APauseStopsTheTrial) {
  FakeTracker tracker;
  Daemon daemon({"--threads", "1", "--tracker", tracker.address()});
  ASSERT_OK(daemon.Measure(Request("correct")));
  v1::MeasureRequest hang = Request("infinite_loop");
  hang.mutable_options()->set_timeout_ms(600'000);
  std::thread caller([&] {
    grpc::ClientContext context;
    v1::MeasureReply reply;
    const grpc::Status status = daemon.stub().Measure(&context, hang, &reply);
    EXPECT_EQ(status.error_message(), "the worker takes no trials now: paused by ada");
    Status marked = FromGrpc(status);
    MarkYield(context, marked);
    EXPECT_TRUE(IsYield(marked));
  });
  Clock::Real().SleepFor(absl::Milliseconds(200));
  tracker.Ask(v1::WORKER_PAUSED, "ada");
  caller.join();
  EXPECT_EQ(tracker.WaitFor([](auto& r) { return r.worker().mode() == v1::WORKER_PAUSED; })
                .worker()
                .mode_reason(),
            "paused by ada");
  EXPECT_THAT(daemon.Measure(Request("correct")),
              StatusIs(StatusCode::kUnavailable, HasSubstr("paused by ada")));
  EXPECT_TRUE(HasNoChildren(daemon)) << "the device is let go";
  tracker.Ask(v1::WORKER_SERVES, "bob");
  tracker.WaitFor([](auto& r) { return r.worker().asked_by() == "bob"; });
  ASSERT_OK_AND_ASSIGN(const v1::MeasureReply reply, daemon.Measure(Request("correct")));
  EXPECT_EQ(reply.result().error(), v1::NO_ERROR);
}

// Returns a window of an hour that begins so many hours from now, in UTC.
std::string HoursFromNow(int hours) {
  const absl::TimeZone utc = absl::UTCTimeZone();
  const absl::Time from = absl::Now() + absl::Hours(hours);
  return absl::FormatTime("%H:%M-", from, utc) +
         absl::FormatTime("%H:%M", from + absl::Hours(1), utc);
}

v1::MeasureRequest NullRequest() {
  v1::MeasureRequest request;
  request.mutable_artifact()->set_device("null");
  request.mutable_artifact()->set_digest(DigestOf(request.artifact()));
  return request;
}

TEST(DaemonTest, OutsideOfItsHoursARunnerIsPaused) {
  FakeTracker tracker;
  Daemon daemon({"--device", "null", "--hours", HoursFromNow(6), "--hours-zone", "UTC", "--tracker",
                 tracker.address()});
  const v1::WorkerState first = tracker.WaitFor([](auto&) { return true; }).worker();
  EXPECT_EQ(first.mode(), v1::WORKER_PAUSED) << "from the first announcement on";
  EXPECT_THAT(first.mode_reason(), HasSubstr("outside of its hours "));
  EXPECT_THAT(daemon.Measure(NullRequest()),
              StatusIs(StatusCode::kUnavailable, HasSubstr("outside of its hours ")));
  // An operator does not override them.
  tracker.Ask(v1::WORKER_SERVES, "bob");
  EXPECT_EQ(tracker.WaitFor([](auto& r) { return r.worker().asked_by() == "bob"; }).worker().mode(),
            v1::WORKER_PAUSED);
}

TEST(DaemonTest, ARunnerSaysWhichPartOfTheTimeItTakes) {
  FakeTracker tracker;
  Daemon daemon(
      {"--device", "null", "--hours", "mon-sun", "--share", "25%", "--tracker", tracker.address()});
  const v1::WorkerState worker = tracker.WaitFor([](auto&) { return true; }).worker();
  EXPECT_EQ(worker.mode(), v1::WORKER_SERVES);
  EXPECT_EQ(worker.mode_reason(), "takes at most 25% of the device's time");
  EXPECT_OK(daemon.Measure(NullRequest()));
}

TEST(DaemonTest, StopsDuringATrial) {
  Daemon daemon({"--threads", "1"});
  ASSERT_OK(daemon.Measure(Request("correct")));
  v1::MeasureRequest hang = Request("infinite_loop");
  hang.mutable_options()->set_timeout_ms(600'000);
  std::thread caller([&] { EXPECT_FALSE(daemon.Measure(hang).ok()); });
  Clock::Real().SleepFor(absl::Milliseconds(200));
  ASSERT_OK_AND_ASSIGN(const ExitStatus exit, daemon.Stop());
  EXPECT_TRUE(exit.ok()) << exit.ToString();
  caller.join();
}

TEST(DaemonTest, KilledDaemonLeavesNoChildBehind) {
  Daemon daemon({"--threads", "1"});
  ASSERT_OK(daemon.Measure(Request("correct")));
  v1::MeasureRequest hang = Request("infinite_loop");
  hang.mutable_options()->set_timeout_ms(600'000);
  std::thread caller([&] { EXPECT_FALSE(daemon.Measure(hang).ok()); });
  Clock::Real().SleepFor(absl::Milliseconds(200));
  const std::vector<pid_t> children = ChildrenOf(daemon.pid());
  EXPECT_THAT(children, SizeIs(2));
  daemon.Kill();
  caller.join();
  EXPECT_TRUE(AllGone(children));
}

TEST(DaemonTest, NullDeviceAnnouncesItself) {
  FakeTracker tracker;
  Daemon daemon({"--device", "null", "--tracker", tracker.address()});
  const v1::WorkerState worker = tracker.WaitFor([](auto&) { return true; }).worker();
  EXPECT_THAT(worker.keys(), ElementsAre("null"));
  EXPECT_EQ(worker.target(), "null");
  ASSERT_OK_AND_ASSIGN(const v1::MeasureReply reply, daemon.Measure(NullRequest()));
  EXPECT_THAT(reply.result().costs_s(), SizeIs(1));
}

TEST(DaemonTest, DoesNotStartWithAGapWhereTheSandboxIsRequired) {
  const SandboxFound found = FindSandbox({.view = CpuFiles()});
  if (found.gaps.empty()) GTEST_SKIP() << "the sandbox has no gap here";
  const RunResult result = RunRunner({"--threads", "2", "--require-sandbox"});
  EXPECT_NE(result.exit.code, 0);
  EXPECT_THAT(result.error, HasSubstr("--require-sandbox is given, and"));
  for (const std::string& gap : found.gaps) EXPECT_THAT(result.error, HasSubstr(gap));
}

TEST(OnceTest, MeasuresARequestFromAFile) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("runner-once"));
  ASSERT_OK(WriteFile(folder.Join("right.pb"), Request("correct").SerializeAsString()));
  RunResult result = RunRunner({"--once", folder.Join("right.pb")});
  EXPECT_TRUE(result.exit.ok()) << result.error;
  EXPECT_THAT(result.output, AllOf(HasSubstr("costs_s: "), HasSubstr("reference_cost_s: ")));

  v1::MeasureRequest by_hand = Request("wrong_answer");
  by_hand.mutable_artifact()->clear_digest();
  by_hand.clear_reference_digest();
  ASSERT_OK(WriteFile(folder.Join("wrong.txtpb"), by_hand.DebugString()));
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
  // The variable hides the GPUs of a machine that has a driver.
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
  EXPECT_THAT(RunRunner({"--hours", "mon-fry"}).error,
              HasSubstr("found 'mon-fry', expected a day"));
  EXPECT_THAT(RunRunner({"--hours", "mon", "--hours-zone", "Europe/Atlantis"}).error,
              HasSubstr("no time zone 'Europe/Atlantis'"));
  EXPECT_THAT(RunRunner({"--device", "null", "--hours-zone", "UTC"}).error,
              HasSubstr("of no use without --hours"));
  EXPECT_THAT(RunRunner({"--share", "0.25"}).error, HasSubstr("as in 25%"));
  EXPECT_THAT(RunRunner({"--log-level", "loud"}).error, HasSubstr("loud"));
  EXPECT_THAT(RunRunner({"--listen", "nowhere"}).error, HasSubstr("nowhere"));
  EXPECT_THAT(RunRunner({"--tracker", "nowhere"}).error, HasSubstr("nowhere"));
}

}  // namespace
}  // namespace kiln::runner
