// Runs whole trials in real child processes: right programs, their timing, and calls that wait.
#include "runner/device_slot.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/file/file.h"
#include "base/process/process_tree.h"
#include "base/status_testing.h"
#include "device/device_state.h"
#include "rpc/artifact_digest.h"
#include "runner/device_slot_testing.h"
#include "runner/input_values.h"

namespace kiln::runner {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Gt;
using testing::HasSubstr;
using testing::SizeIs;

TEST_F(DeviceSlotTest, MeasuresARightProgram) {
  v1::MeasureRequest request = Request("correct");
  request.mutable_options()->set_repeat(4);
  request.mutable_options()->set_min_repeat_ms(2);
  const v1::MeasureReply reply = Measure(request);
  const v1::TrialResult& result = reply.result();
  EXPECT_EQ(result.error(), v1::NO_ERROR) << result.message();
  EXPECT_THAT(result.message(), IsEmptyOrNoiseMark());
  EXPECT_THAT(result.costs_s(), AllOf(SizeIs(4), Each(Gt(0))));
  EXPECT_EQ(result.max_error(), 0);
  EXPECT_EQ(result.device(), "test device");
  EXPECT_GT(result.run_s(), 0.008);
  EXPECT_GT(result.timestamp_s(), 1'600'000'000);
  EXPECT_GT(reply.reference_cost_s(), 0);
  const v1::TrialTimes& times = result.times();
  EXPECT_GT(times.timed_runs_s(), 0.008) << "4 batches of 2 ms";
  EXPECT_GE(times.timing_s(), times.timed_runs_s());
  EXPECT_GT(times.reference_s(), 0);
  for (double part : {times.load_s(), times.prepare_s(), times.first_run_s(), times.check_s(),
                      times.last_run_s(), times.release_s()}) {
    EXPECT_GT(part, 0) << times.ShortDebugString();
    EXPECT_LT(part, result.run_s() - times.timing_s()) << times.ShortDebugString();
  }
  EXPECT_EQ(Measure(request).result().times().reference_s(), 0) << "its outputs are kept";
}

TEST_F(DeviceSlotTest, MeasuresWithFlushedCaches) {
  v1::MeasureRequest request = Request("correct");
  request.mutable_options()->set_repeat(3);
  request.mutable_options()->set_min_repeat_ms(1'000);
  request.mutable_options()->set_flush_cache(true);
  // Flushing a large cache on a busy machine takes long.
  request.mutable_options()->set_timeout_ms(60'000);
  const v1::TrialResult result = Measure(request).result();
  EXPECT_THAT(result.costs_s(), SizeIs(3));
  const v1::TrialTimes& times = result.times();
  EXPECT_LT(times.timed_runs_s(), 1) << "each reading is one call, because a second is warm";
  // A flush writes to each line of 32 MiB or more, and no two cores do so in a third of a
  // millisecond.
  EXPECT_GT(times.timing_s() - times.timed_runs_s(), 3 * 0.33e-3) << "a flush before each reading";
}

TEST_F(DeviceSlotTest, StopsSlowProgramsEarly) {
  v1::MeasureRequest request = Request("correct");
  request.mutable_options()->set_repeat(5);
  request.mutable_options()->set_early_stop_ratio(2);
  request.mutable_options()->set_best_cost_s(1e-12);
  const v1::TrialResult result = Measure(request).result();
  EXPECT_TRUE(result.stopped_early());
  EXPECT_THAT(result.costs_s(), SizeIs(1));
}

TEST_F(DeviceSlotTest, ProgramsMayUseTheStackAndPrint) {
  for (const char* name : {"deep_stack", "prints"}) {
    const v1::TrialResult result = Measure(Request(name)).result();
    EXPECT_EQ(result.error(), v1::NO_ERROR) << name << ": " << result.message();
  }
  EXPECT_EQ(slot_.stats().children_lost, 0);
}

TEST_F(DeviceSlotTest, ToleranceIsTheCallers) {
  v1::MeasureRequest request = Request("slightly_off");
  const v1::TrialResult loose = Measure(request).result();
  EXPECT_EQ(loose.error(), v1::NO_ERROR) << loose.message();
  EXPECT_GT(loose.max_error(), 0);
  request.mutable_tolerance()->set_relative(1e-6);
  request.mutable_tolerance()->set_absolute(1e-6);
  EXPECT_EQ(Measure(request).result().error(), v1::WRONG_ANSWER_ERROR);
}

TEST_F(DeviceSlotTest, InputsAreInTheirRange) {
  v1::MeasureRequest request = Request("constant");
  // The program computes 2a + b.
  *request.mutable_reference() = Program("correct");
  for (v1::Artifact* artifact : {request.mutable_artifact(), request.mutable_reference()}) {
    for (int arg : {0, 1}) {
      v1::ValueRange& range = *artifact->mutable_plan()->mutable_args(arg)->mutable_range();
      range.set_low(0.16);
      range.set_high(0.17);
    }
  }
  request.mutable_reference()->set_digest(DigestOf(request.reference()));
  request.set_reference_digest(request.reference().digest());
  request.mutable_tolerance()->set_relative(0.05);
  const v1::TrialResult result = Measure(request).result();
  EXPECT_EQ(result.error(), v1::NO_ERROR) << "0.48 to 0.51 is about 0.5: " << result.message();
}

TEST_F(DeviceSlotTest, RefusesBadRequests) {
  v1::MeasureRequest request = Request("correct");
  request.clear_artifact();
  EXPECT_THAT(slot_.Measure(request, NotCancelled),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no artifact")));
  request = Request("correct");
  request.clear_reference();
  request.clear_reference_digest();
  EXPECT_THAT(slot_.Measure(request, NotCancelled),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("reference_digest is empty")));
  request = Request("correct");
  request.set_reference_digest("0123");
  EXPECT_THAT(slot_.Measure(request, NotCancelled),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("the reference came with digest '0123', that of its content is")));
}

TEST_F(DeviceSlotTest, PlansThatDoNotFitAreTrialsThatFailed) {
  v1::MeasureRequest request = Request("correct");
  request.mutable_artifact()->mutable_plan()->mutable_args(2)->set_shape(0, 5);
  v1::TrialResult result = Measure(request).result();
  EXPECT_EQ(result.error(), v1::WRONG_ANSWER_ERROR);
  EXPECT_THAT(result.message(), HasSubstr("float32[5, 6], the reference has float32[4, 6]"));

  request = Request("correct");
  request.mutable_artifact()->mutable_plan()->mutable_args(0)->set_dtype("float31");
  result = Measure(request).result();
  EXPECT_EQ(result.error(), v1::COMPILE_DEVICE_ERROR);
  EXPECT_THAT(result.message(), HasSubstr("unknown dtype 'float31'"));

  request = Request("correct");
  request.mutable_artifact()->mutable_plan()->mutable_args(3)->set_shape(0, int64_t{1} << 43);
  result = Measure(request).result();
  EXPECT_EQ(result.error(), v1::RUNTIME_DEVICE_ERROR);
  EXPECT_THAT(result.message(), HasSubstr("the arguments need 32.00 TiB"));

  request = Request("correct");
  request.mutable_artifact()->set_device("cuda");
  EXPECT_EQ(Measure(request).result().error(), v1::COMPILE_DEVICE_ERROR);
  EXPECT_EQ(slot_.stats().children_lost, 0);
}

// The program has no third run: the outputs of its timed calls are checked instead.
TEST_F(DeviceSlotTest, ALongProgramRunsTwice) {
  ExpectRight();
  v1::MeasureRequest request = Request("slow_changing");
  request.mutable_options()->set_timeout_ms(60'000);
  const v1::TrialResult result = Measure(request).result();
  EXPECT_EQ(result.error(), v1::WRONG_ANSWER_ERROR);
  EXPECT_THAT(result.message(),
              HasSubstr("right in the first run, wrong in the last one, which had other inputs"));
  EXPECT_LT(result.times().last_run_s(), 1);
}

class LongProgramTest : public DeviceSlotTest {
 protected:
  // Measures until the first run ends within its limit. A busy machine may need a few trials.
  v1::TrialResult MeasureInTime(const v1::MeasureRequest& request) {
    constexpr int kMostTrials = 30;
    v1::TrialResult result;
    for (int trial = 0; trial < kMostTrials; ++trial) {
      result = Measure(request).result();
      if (result.error() != v1::RUN_TIMEOUT_ERROR) break;
    }
    return result;
  }
};

// A run takes 1.05 s.
TEST_F(LongProgramTest, OneWithoutTimeForAnotherRunHasTheTimeOfItsFirst) {
  ExpectRight();
  v1::MeasureRequest request = Request("slow_changing");
  request.mutable_options()->set_timeout_ms(2'200);
  v1::TrialResult result = MeasureInTime(request);
  EXPECT_EQ(result.error(), v1::NO_ERROR) << result.message();
  EXPECT_TRUE(result.stopped_early());
  ASSERT_THAT(result.costs_s(), SizeIs(1));
  EXPECT_THAT(result.costs_s(0), AllOf(testing::Ge(1.05), testing::Le(2.2)));
  EXPECT_EQ(result.times().timing_s(), 0);
  // A program that is far slower has no second run either.
  request.mutable_options()->set_timeout_ms(60'000);
  request.mutable_options()->set_early_stop_ratio(10);
  request.mutable_options()->set_best_cost_s(0.1);
  result = MeasureInTime(request);
  EXPECT_TRUE(result.stopped_early());
  EXPECT_EQ(result.times().timing_s(), 0);
}

TEST_F(DeviceSlotTest, ASlowProgramIsStoppedInItsFirstRun) {
  v1::MeasureRequest request = Request("infinite_loop");
  request.mutable_options()->set_timeout_ms(600'000);
  request.mutable_options()->set_early_stop_ratio(10);
  request.mutable_options()->set_best_cost_s(1e-3);
  const v1::TrialResult result = Measure(request).result();
  EXPECT_EQ(result.error(), v1::RUN_TIMEOUT_ERROR);
  EXPECT_THAT(result.message(),
              AllOf(HasSubstr("far slower than the best one known"), HasSubstr("2.01s")));
  ExpectRight();
  // The limit of the first run does not hold for the repeats of a right program.
  request = Request("slow");
  request.mutable_options()->set_timeout_ms(600'000);
  // The repeats take 3 s.
  request.mutable_options()->set_repeat(20);
  request.mutable_options()->set_early_stop_ratio(1e6);
  // Calls from 1 s on count as far slower.
  request.mutable_options()->set_best_cost_s(1e-6);
  EXPECT_THAT(Measure(request).result().costs_s(), SizeIs(20));
}

TEST_F(DeviceSlotTest, CancelledCallDoesNotHoldTheDevice) {
  ExpectRight();
  v1::MeasureRequest request = Request("infinite_loop");
  request.mutable_options()->set_timeout_ms(600'000);
  const Status status = slot_.Measure(request, [] { return true; }).status();
  EXPECT_THAT(status, StatusIs(StatusCode::kCancelled, HasSubstr("cancelled")));
  ExpectRight();
}

TEST_F(DeviceSlotTest, ConcurrentCallsWaitTheirTurn) {
  ExpectRight();
  std::atomic<bool> runs{false}, cancel{false};
  std::thread hog([&] {
    v1::MeasureRequest request = Request("infinite_loop");
    request.mutable_options()->set_timeout_ms(600'000);
    const auto cancelled = [&] {
      runs = true;
      return cancel.load();
    };
    EXPECT_THAT(slot_.Measure(request, cancelled),
                StatusIs(StatusCode::kCancelled, HasSubstr("cancelled")));
  });
  while (!runs) std::this_thread::yield();
  // This call gives up while it waits; the others get the device afterwards.
  EXPECT_THAT(slot_.Measure(Request("correct"), [] { return true; }),
              StatusIs(StatusCode::kCancelled, HasSubstr("waiting for the device")));
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) callers.emplace_back([&] { ExpectRight(); });
  cancel = true;
  for (std::thread& caller : callers) caller.join();
  hog.join();
  EXPECT_EQ(slot_.stats().trials_done, 5);
}

// The program's cost never gets well known, so it is called 100 times, which takes 3 s, unless
// another trial comes.
TEST_F(DeviceSlotTest, IdleTimeMakesReadingsUntilAnotherTrialComes) {
  ExpectRight();
  v1::MeasureRequest idle = Request("uneven");
  idle.mutable_options()->set_number(1);
  idle.mutable_options()->set_timeout_ms(600'000);
  idle.mutable_options()->set_idle_ms(600'000);
  v1::TrialResult first, second;
  // On a busy machine the other trial may come before the second reading. Then it comes later.
  for (const int later_ms : {300, 3'000, 30'000}) {
    std::thread caller([&] { first = Measure(idle).result(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(later_ms));
    second = Measure(Request("correct")).result();
    caller.join();
    if (first.costs_s_size() > 1) break;
  }
  EXPECT_EQ(first.error(), v1::NO_ERROR) << first.message();
  EXPECT_THAT(first.costs_s(), SizeIs(AllOf(Gt(1), testing::Lt(100))));
  EXPECT_EQ(second.error(), v1::NO_ERROR) << second.message();
  // The flag is no longer set.
  EXPECT_THAT(Measure(idle).result().costs_s(), SizeIs(100));
}

// Counts how often it is read.
class FakeState : public device::DeviceStateReader {
 public:
  device::DeviceState Read() override { return {.cpu_mhz = 3000, .load = ++reads}; }
  int reads = 0;
};

TEST(DeviceStateTest, ResultsHaveTheStateOfTheEndOfTheTiming) {
  FakeState state;
  DeviceSlotOptions options = TestOptions();
  options.state = &state;
  DeviceSlot slot(options);
  ASSERT_OK_AND_ASSIGN(v1::MeasureReply reply, slot.Measure(Request("correct"), NotCancelled));
  EXPECT_EQ(reply.result().device_state().cpu_mhz(), 3000u);
  EXPECT_EQ(reply.result().device_state().load(), 1);
  EXPECT_FALSE(reply.result().device_state().has_power_w());
  // A program that is stopped in its first run is not timed.
  v1::MeasureRequest slow = Request("correct");
  slow.mutable_options()->set_early_stop_ratio(1);
  slow.mutable_options()->set_best_cost_s(1e-12);
  ASSERT_OK_AND_ASSIGN(reply, slot.Measure(slow, NotCancelled));
  EXPECT_TRUE(reply.result().stopped_early());
  EXPECT_EQ(reply.result().device_state().load(), 2);
  EXPECT_EQ(state.reads, 2);
}

TEST_F(DeviceSlotTest, TimesItsCanaryBetweenTrials) {
  ASSERT_OK_AND_ASSIGN(const double before_s, slot_.TimeCanary(NotCancelled));
  EXPECT_GT(before_s, 100e-6) << "100,000 multiplications that wait for each other";
  ExpectRight();
  ASSERT_OK_AND_ASSIGN(const double after_s, slot_.TimeCanary(NotCancelled));
  EXPECT_GT(after_s, 100e-6);
  EXPECT_EQ(slot_.stats().children_lost, 0u);
  EXPECT_EQ(slot_.stats().trials_done, 1u) << "a canary is no trial";
}

TEST_F(DeviceSlotTest, ACanaryWaitsForTheTrialInHand) {
  v1::MeasureRequest hang = Request("infinite_loop");
  hang.mutable_options()->set_timeout_ms(600'000);
  std::atomic<bool> stop = false;
  std::thread trial([&] { (void)slot_.Measure(hang, [&] { return stop.load(); }); });
  while (slot_.stats().references_run == 0) std::this_thread::yield();
  std::atomic<int> asked = 0;
  EXPECT_THAT(slot_.TimeCanary([&] { return ++asked > 2; }),
              StatusIs(StatusCode::kCancelled, HasSubstr("waiting for the device")));
  stop = true;
  trial.join();
}

TEST_F(DeviceSlotTest, ADeviceThatIsLetGoHasNoChildren) {
  ExpectRight();
  EXPECT_FALSE(ChildrenOf(getpid()).empty());
  slot_.LetGo();
  EXPECT_TRUE(ChildrenOf(getpid()).empty());
  slot_.LetGo();
  ExpectRight();
  EXPECT_EQ(slot_.stats().children_lost, 0u);
}

TEST_F(DeviceSlotTest, ADeviceWithATrialInHandIsNotLetGo) {
  ExpectRight();
  std::atomic<bool> asked = false, cancelled = false;
  std::thread trial([&] {
    EXPECT_THAT(slot_.Measure(Request("infinite_loop"),
                              [&] {
                                asked = true;
                                return cancelled.load();
                              }),
                StatusIs(StatusCode::kCancelled, testing::_));
  });
  while (!asked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  slot_.LetGo();
  EXPECT_FALSE(ChildrenOf(getpid()).empty());
  cancelled = true;
  trial.join();
}

TEST(DeviceSlotStartTest, ChildThatDoesNotStartIsUnavailable) {
  DeviceSlotOptions options = TestOptions();
  options.child_command = {"/nonexistent/runner"};
  DeviceSlot missing(options);
  EXPECT_THAT(missing.Measure(Request("correct"), NotCancelled),
              StatusIs(StatusCode::kUnavailable, HasSubstr("/nonexistent/runner")));
  EXPECT_THAT(missing.TimeCanary(NotCancelled),
              StatusIs(StatusCode::kUnavailable, HasSubstr("/nonexistent/runner")));
  options.child_command = {"/bin/false"};
  DeviceSlot failing(options);
  EXPECT_THAT(failing.Measure(Request("correct"), NotCancelled),
              StatusIs(StatusCode::kUnavailable, HasSubstr("exit status 1")));
}

TEST(NullDeviceTest, ItsCanaryTakesWhatAFileSays) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("null-canary"));
  DeviceSlotOptions options;
  options.device = "null";
  options.null_canary_file = folder.Join("canary");
  DeviceSlot slot(options);
  EXPECT_EQ(slot.TimeCanary(NotCancelled).value(), 1e-3);
  ASSERT_OK(WriteFile(options.null_canary_file, "0.00131\n"));
  EXPECT_EQ(slot.TimeCanary(NotCancelled).value(), 1.31e-3);
  for (const char* bad : {"", "slow", "0", "-1", "inf", "nan"}) {
    ASSERT_OK(WriteFile(options.null_canary_file, bad));
    EXPECT_THAT(slot.TimeCanary(NotCancelled),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected the seconds")));
  }
}

TEST(NullDeviceTest, ADeviceWhoseShareIsUsedUpTakesNoTrial) {
  FakeClock clock;
  DeviceShare share(0.25, clock);
  DeviceSlotOptions options;
  options.device = "null";
  options.share = &share;
  DeviceSlot slot(options);
  v1::MeasureRequest request;
  request.mutable_artifact()->set_device("null");
  request.mutable_artifact()->set_digest(DigestOf(request.artifact()));
  EXPECT_OK(slot.Measure(request, NotCancelled));
  {
    DeviceShare::Use use(&share);
    ASSERT_OK(use.Begin(NotCancelled));
    clock.Advance(absl::Seconds(20));
  }
  EXPECT_THAT(slot.Measure(request, NotCancelled),
              StatusIs(StatusCode::kResourceExhausted, testing::HasSubstr("takes at most 25%")));
  EXPECT_OK(slot.TimeCanary(NotCancelled));
  clock.Advance(absl::Seconds(60));
  EXPECT_OK(slot.Measure(request, NotCancelled));
  EXPECT_EQ(slot.stats().trials_done, 2u);
}

TEST(NullDeviceTest, MakesUpACostFromTheBytes) {
  DeviceSlotOptions options;
  options.device = "null";
  DeviceSlot slot(options);
  v1::MeasureRequest request;
  request.mutable_artifact()->set_device("null");
  request.mutable_artifact()->set_binary("some program");
  request.mutable_artifact()->set_digest(DigestOf(request.artifact()));
  request.mutable_options()->set_repeat(2);
  v1::Artifact reference = request.artifact();
  reference.set_binary("the reference");
  request.set_reference_digest(DigestOf(reference));
  EXPECT_THAT(slot.Measure(request, NotCancelled),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("not known")));
  *request.mutable_reference() = reference;
  ASSERT_OK_AND_ASSIGN(const v1::MeasureReply first, slot.Measure(request, NotCancelled));
  request.clear_reference();
  ASSERT_OK_AND_ASSIGN(const v1::MeasureReply second, slot.Measure(request, NotCancelled));
  ASSERT_THAT(first.result().costs_s(), SizeIs(2));
  EXPECT_EQ(first.result().costs_s(0), second.result().costs_s(1));
  EXPECT_EQ(first.reference_cost_s(), second.reference_cost_s());
  EXPECT_THAT(first.result().costs_s(0), AllOf(testing::Ge(1e-5), testing::Le(1e-2)));
  request.mutable_artifact()->set_binary("another program");
  request.mutable_artifact()->set_digest(DigestOf(request.artifact()));
  ASSERT_OK_AND_ASSIGN(const v1::MeasureReply other, slot.Measure(request, NotCancelled));
  EXPECT_NE(other.result().costs_s(0), first.result().costs_s(0));
  EXPECT_EQ(slot.stats().children_started, 0);
}

}  // namespace
}  // namespace kiln::runner
