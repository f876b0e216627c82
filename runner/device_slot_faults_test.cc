// Runs whole trials in real child processes, with each fault and with hostile programs. A fault
// costs its own trial, and a program that hangs also costs a child; the next trial never suffers.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "base/process/namespaces.h"
#include "base/process/process_tree.h"
#include "base/status_testing.h"
#include "runner/containment.h"
#include "runner/device_slot.h"
#include "runner/device_slot_testing.h"

namespace kiln::runner {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// The programs are fast because the timed calls compute nothing.
TEST_F(DeviceSlotTest, AKeptAnswerIsWrong) {
  for (const char* program :
       {"keeps_answer", "keeps_by_first", "keeps_by_address", "leaves_outputs"}) {
    const v1::TrialResult result = Measure(Request(program)).result();
    EXPECT_EQ(result.error(), v1::WRONG_ANSWER_ERROR) << program;
    EXPECT_THAT(result.message(), HasSubstr("wrong in the last one, which had other inputs"));
    EXPECT_THAT(result.costs_s(), SizeIs(0));
  }
  // Other trials find their own inputs again.
  ExpectRight();
}

TEST_F(DeviceSlotTest, AKeptAnswerToASampleIsWrong) {
  v1::MeasureRequest request = Request("keeps_answer");
  v1::OutputSample& sample = *request.add_samples();
  for (int d = 0; d < 2; ++d) {
    sample.add_offset(0);
    sample.add_stride(1);
  }
  EXPECT_EQ(Measure(request).result().error(), v1::WRONG_ANSWER_ERROR);
}

v1::MeasureRequest UnhurriedRequest(const char* program) {
  v1::MeasureRequest request = Request(program);
  request.mutable_options()->set_timeout_ms(60'000);
  return request;
}

// Expects that the program gains nothing: it is refused, or the time of a call that it had to
// compute in counts, because the machine is too busy to tell why that call took longer.
void ExpectNoGain(const v1::TrialResult& result, double call_s) {
  if (result.error() == v1::NO_ERROR) {
    EXPECT_THAT(result.costs_s(), testing::Each(testing::Ge(call_s)));
    EXPECT_THAT(result.message(), HasSubstr("the former counts"));
    EXPECT_TRUE(result.stopped_early());
    return;
  }
  EXPECT_EQ(result.error(), v1::WRONG_ANSWER_ERROR);
  EXPECT_THAT(result.message(), HasSubstr("the program keeps answers: a call takes at least"));
  EXPECT_THAT(result.costs_s(), SizeIs(0));
}

// These programs are right for all inputs. They compute for 20 ms if they do not know the inputs,
// and for 2 ms if they find poison in their output. One of them tells by its own clock that it
// took no time.
TEST_F(DeviceSlotTest, AnAnswerThatIsKeptUntilSomethingChangesIsRefused) {
  ExpectNoGain(Measure(UnhurriedRequest("keeps_by_all")).result(), 20e-3);
  ExpectNoGain(Measure(UnhurriedRequest("keeps_with_clock")).result(), 20e-3);
  ExpectNoGain(Measure(UnhurriedRequest("new_if_poisoned_somewhere")).result(), 0.5e-3);
  ExpectRight();
}

// The program is six times as fast on inputs that it knows.
TEST_F(DeviceSlotTest, APartOfAnAnswerThatIsKeptIsRefused) {
  ExpectNoGain(Measure(UnhurriedRequest("keeps_a_part")).result(), 30e-3);
}

// The time limit leaves no time for calls that tell more.
TEST_F(DeviceSlotTest, AFirstCallThatIsLongerCounts) {
  v1::MeasureRequest request = Request("keeps_a_part_of_much");
  request.mutable_options()->set_timeout_ms(3000);
  request.mutable_options()->set_number(1);
  request.mutable_options()->set_repeat(2);
  ExpectNoGain(Measure(request).result(), 150e-3);
}

// The program computes only if the first element of its output is poisoned.
TEST_F(DeviceSlotTest, AnOutputThatIsLeftAsItWasIsWrong) {
  const v1::TrialResult result = Measure(Request("new_if_poisoned")).result();
  EXPECT_EQ(result.error(), v1::WRONG_ANSWER_ERROR) << result.message();
  EXPECT_THAT(result.message(),
              HasSubstr("which found its own answer with single elements poisoned"));
}

// Expects that the program gains nothing by its clock. A call computes for call_s.
void ExpectNoGainByClock(const v1::TrialResult& result, double call_s) {
  if (result.error() == v1::NO_ERROR) {
    // If it waits for a core for so long that a fifth of the time is what it computed, its clock
    // says no less than that. If the system counts nothing, the time that passed outside counts.
    EXPECT_THAT(result.costs_s(), testing::Each(testing::Ge(0.85 * call_s)));
    EXPECT_THAT(result.costs_s(), testing::Not(SizeIs(0)));
    return;
  }
  EXPECT_EQ(result.error(), v1::RUNTIME_DEVICE_ERROR);
  EXPECT_THAT(result.message(),
              HasSubstr("the clock of the program's process was changed: by it "));
  EXPECT_THAT(result.costs_s(), SizeIs(0));
}

// The program computes for 50 us, and says 10 us.
TEST_F(DeviceSlotTest, AChangedClockIsFound) {
  v1::MeasureRequest request = UnhurriedRequest("patches_clock");
  request.mutable_options()->set_min_repeat_ms(60);
  ExpectNoGainByClock(Measure(request).result(), 50e-6);
  ExpectRight();
}

// With flushed caches each reading is one call. The program computes for 50 ms, and says 1 ms.
TEST_F(DeviceSlotTest, AChangedClockIsFoundInSingleCalls) {
  v1::MeasureRequest request = UnhurriedRequest("patches_clock_by_far");
  request.mutable_options()->set_flush_cache(true);
  ExpectNoGainByClock(Measure(request).result(), 50e-3);
}

// A program that waits for a core looks like one that sleeps, so the latter is not refused, unless
// its threads look for work for longer than it says. It sleeps for 1 ms, and says 0.2 ms.
TEST_F(DeviceSlotTest, AChangedClockGainsNothingForAProgramThatSleeps) {
  v1::MeasureRequest request = UnhurriedRequest("patches_clock_asleep");
  request.mutable_options()->set_min_repeat_ms(60);
  ExpectNoGainByClock(Measure(request).result(), 1e-3);
}

// These programs say at once that a call is over, and compute afterwards: when their process reads
// the output, or before it takes the next request.
TEST_F(DeviceSlotTest, AnAnswerThatComesLaterIsWrong) {
  for (const char* program : {"lazy", "late"}) {
    const v1::TrialResult result = Measure(Request(program)).result();
    EXPECT_EQ(result.error(), v1::WRONG_ANSWER_ERROR) << program;
    EXPECT_THAT(result.message(), HasSubstr("output out: element [0, 0]: got nan")) << program;
    EXPECT_THAT(result.costs_s(), SizeIs(0));
  }
  ExpectRight();
}

// The program takes less time than the work that the request names.
TEST_F(DeviceSlotTest, ATimeBelowTheFloorIsRefused) {
  DeviceSlotOptions options = TestOptions();
  options.model.cores = 2;
  options.model.clock_mhz = 3000;
  options.model.gflops_per_core = 100;
  DeviceSlot slot(options);
  v1::MeasureRequest request = Request("correct");
  request.set_operations(48);
  auto reply = slot.Measure(request, NotCancelled);
  ASSERT_OK(reply);
  EXPECT_EQ(reply->result().error(), v1::NO_ERROR) << reply->result().message();
  request.set_operations(1e13);
  reply = slot.Measure(request, NotCancelled);
  ASSERT_OK(reply);
  EXPECT_EQ(reply->result().error(), v1::WRONG_ANSWER_ERROR);
  EXPECT_THAT(reply->result().message(), HasSubstr("which is below the device's floor: 1e+13"));
  EXPECT_THAT(reply->result().costs_s(), SizeIs(0));
}

struct Fault {
  const char* program;
  v1::ErrorKind error;
  const char* message;
  bool loses_child;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.program; }

class FaultTest : public DeviceSlotTest, public testing::WithParamInterface<Fault> {};

TEST_P(FaultTest, CostsOneTrial) {
  const Fault& fault = GetParam();
  ExpectRight();
  v1::MeasureRequest request = Request(fault.program);
  if (fault.error == v1::RUN_TIMEOUT_ERROR) request.mutable_options()->set_timeout_ms(400);
  const v1::TrialResult result = Measure(request).result();
  EXPECT_EQ(v1::ErrorKind_Name(result.error()), v1::ErrorKind_Name(fault.error));
  EXPECT_THAT(result.message(), HasSubstr(fault.message));
  EXPECT_THAT(result.costs_s(), SizeIs(0));

  ExpectRight();
  const DeviceSlot::Stats stats = slot_.stats();
  EXPECT_EQ(stats.children_lost, fault.loses_child ? 1 : 0);
  EXPECT_EQ(stats.children_started, fault.loses_child ? 3 : 2);
  EXPECT_EQ(stats.references_run, 1) << "a new child needs no new run of the reference";
  EXPECT_EQ(stats.trials_done, 3);
}

INSTANTIATE_TEST_SUITE_P(
    All, FaultTest,
    testing::Values(
        Fault{
            "null_store", v1::RUNTIME_DEVICE_ERROR,
            "killed by signal 11 (Segmentation fault) while running: access through a null pointer",
            false},
        Fault{"task_crash", v1::RUNTIME_DEVICE_ERROR, "killed by signal 11", false},
        Fault{"infinite_loop", v1::RUN_TIMEOUT_ERROR, "not finished after 400ms", true},
        Fault{"abort", v1::RUNTIME_DEVICE_ERROR, "killed by signal 6 (Aborted)", false},
        Fault{"bad_utf8", v1::RUNTIME_DEVICE_ERROR, "while running: not ? text", false},
        Fault{"killed", v1::RUNTIME_DEVICE_ERROR, "killed by signal 9 (Killed)", false},
        Fault{"exit", v1::RUNTIME_DEVICE_ERROR, "the program called exit(0)", false},
        Fault{"stack_overflow", v1::RUNTIME_DEVICE_ERROR, "stack overflow", false},
        Fault{"returns_error", v1::RUNTIME_DEVICE_ERROR, "the program returned 3, expected 0",
              false},
        Fault{"wrong_answer", v1::WRONG_ANSWER_ERROR, "output out: element [1, 3]: got ", false},
        Fault{"nan", v1::WRONG_ANSWER_ERROR, "output out: element [3, 5]: got nan", false},
        Fault{"unwritten", v1::WRONG_ANSWER_ERROR, "output out: element [3, 5]: got nan, expected",
              false},
        Fault{"accumulates", v1::WRONG_ANSWER_ERROR, "24 of 24 elements differ", false},
        Fault{"changing", v1::WRONG_ANSWER_ERROR,
              "right in the first run, wrong in the last one, which had other inputs: output out: "
              "element [0, 0]",
              false},
        Fault{"forger", v1::RUNTIME_DEVICE_ERROR,
              "the program wrote into the socket of its process while running", false},
        Fault{"modifies_input", v1::WRONG_ANSWER_ERROR, "the program modified its input b", false},
        Fault{"out_of_bounds", v1::RUNTIME_DEVICE_ERROR,
              "write outside of argument 'out': 12 bytes after its end", false},
        Fault{"before_start", v1::RUNTIME_DEVICE_ERROR,
              "write outside of argument 'out': 5 bytes before its start", false},
        Fault{"scratch_out_of_bounds", v1::RUNTIME_DEVICE_ERROR, "argument 'scratch'", false},
        Fault{"far_out_of_bounds", v1::RUNTIME_DEVICE_ERROR,
              "16384 bytes after the end of argument 'out'", false},
        Fault{"load_crash", v1::COMPILE_DEVICE_ERROR, "killed by signal 6 (Aborted) while loading",
              false},
        Fault{"no_entry", v1::COMPILE_DEVICE_ERROR, "does not export kiln_entry", false},
        Fault{"undefined_symbol", v1::COMPILE_DEVICE_ERROR, "nobody_defines_this", false}),
    [](const auto& info) { return std::string(info.param.program); });

// The program returns a bit for each thing that worked and should not have.
TEST_F(DeviceSlotTest, HostileProgramGetsNowhere) {
  const std::string missing = MissingContainment({});
  if (missing.find("seccomp") != std::string::npos) GTEST_SKIP() << missing;
  setenv("FARM_PASSWORD", "secret", 1);
  DeviceSlot slot{TestOptions()};
  unsetenv("FARM_PASSWORD");
  const auto reply = slot.Measure(Request("hostile"), NotCancelled);
  ASSERT_OK(reply);
  if (geteuid() != 0 || NobodyExists()) {
    EXPECT_EQ(reply->result().error(), v1::NO_ERROR) << reply->result().message();
  } else {
    // The program is still root if there is no other user, and nothing else worked.
    EXPECT_EQ(reply->result().message(), "the program returned 64, expected 0");
  }
  EXPECT_EQ(slot.stats().children_lost, 0);
}

TEST_F(DeviceSlotTest, ProgramThatPrintsWithoutEndFillsNoMemory) {
  const v1::TrialResult result = Measure(Request("floods")).result();
  EXPECT_EQ(result.error(), v1::NO_ERROR) << result.message();
  ExpectRight();
  EXPECT_EQ(slot_.stats().children_lost, 0);
}

TEST_F(DeviceSlotTest, BrokenObjectDoesNotLoad) {
  v1::MeasureRequest request = Request("correct");
  request.mutable_artifact()->set_binary("not an ELF file");
  EXPECT_EQ(Measure(request).result().error(), v1::COMPILE_DEVICE_ERROR);
  request.mutable_artifact()->set_binary("");
  EXPECT_EQ(Measure(request).result().error(), v1::COMPILE_DEVICE_ERROR);
  // A truncated file is refused or crashes the loader. It never gives an answer, and never ends the
  // runner.
  const std::string whole = Program("correct").binary();
  for (size_t size : {64, 400, 1000, 4096}) {
    request.mutable_artifact()->set_binary(whole.substr(0, std::min(size, whole.size() - 1)));
    const v1::TrialResult result = Measure(request).result();
    EXPECT_NE(result.error(), v1::NO_ERROR) << size;
  }
  ExpectRight();
}

TEST_F(DeviceSlotTest, ManyProgramsThroughOneChild) {
  // Each load is a new object, even if the loader could take it for an earlier one. There are more
  // loads than descriptor numbers under this limit.
  DeviceSlotOptions options = TestOptions();
  options.child_command[2] = "ulimit -n 160; exec \"$0\" \"$@\"";
  DeviceSlot slot(options);
  const auto error_of = [&](const char* program) {
    const auto reply = slot.Measure(Request(program), NotCancelled);
    return reply.ok() ? reply->result().error() : v1::UNKNOWN_ERROR;
  };
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(error_of("correct"), v1::NO_ERROR) << i;
    ASSERT_EQ(error_of("wrong_answer"), v1::WRONG_ANSWER_ERROR) << i;
  }
  EXPECT_EQ(slot.stats().children_started, 2);
}

// Stops each process that runs a program, up to `times` of them, and counts them.
class Stopper {
 public:
  explicit Stopper(int times) : thread_([this, times] { Run(times); }) {}
  ~Stopper() {
    done_ = true;
    thread_.join();
  }
  int stopped() const { return count_; }

 private:
  void Run(int times) {
    while (!done_ && stopped() < times) {
      for (const pid_t child : ChildrenOf(getpid())) {
        for (const pid_t program : ChildrenOf(child)) {
          if (stopped_.contains(program) || kill(program, SIGSTOP) != 0) continue;
          stopped_.insert(program);
          ++count_;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  std::set<pid_t> stopped_;
  std::atomic<int> count_{0};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// A call takes 0.15 s, so that there is time to stop the program.
v1::MeasureRequest LongRequest() {
  v1::MeasureRequest request = Request("slow");
  request.mutable_options()->set_number(1);
  request.mutable_options()->set_repeat(10);
  request.mutable_options()->set_timeout_ms(60'000);
  return request;
}

TEST_F(DeviceSlotTest, AStoppedTrialIsDoneAgain) {
  ExpectRight();
  const auto start = std::chrono::steady_clock::now();
  v1::TrialResult result;
  {
    const Stopper stopper(1);
    result = Measure(LongRequest()).result();
    EXPECT_EQ(stopper.stopped(), 1);
  }
  EXPECT_EQ(result.error(), v1::NO_ERROR) << result.message();
  EXPECT_THAT(result.costs_s(), SizeIs(10));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(50))
      << "the trial has 60 s";
  EXPECT_EQ(slot_.stats().children_lost, 1);
}

// The result is the same if the time limit comes first.
TEST_F(DeviceSlotTest, AStoppedTrialIsNoTimeOut) {
  ExpectRight();
  v1::MeasureRequest request = LongRequest();
  request.mutable_options()->set_repeat(2);
  request.mutable_options()->set_timeout_ms(2500);
  const Stopper stopper(1);
  const v1::TrialResult result = Measure(request).result();
  EXPECT_EQ(result.error(), v1::NO_ERROR) << result.message();
}

TEST_F(DeviceSlotTest, ATrialThatStopsEachTimeHasFailed) {
  ExpectRight();
  const Stopper stopper(3);
  const v1::TrialResult result = Measure(LongRequest()).result();
  EXPECT_EQ(result.error(), v1::RUNTIME_DEVICE_ERROR);
  EXPECT_THAT(result.message(), HasSubstr("stood still (as after SIGSTOP)"));
  EXPECT_THAT(result.message(), HasSubstr("in the last of 3 attempts"));
  EXPECT_EQ(stopper.stopped(), 3);
}

}  // namespace
}  // namespace kiln::runner
