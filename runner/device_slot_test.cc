// Runs whole trials in real child processes, with right programs, with each fault, and with hostile
// programs. A fault costs its own trial, and a program that hangs also costs a child; the next
// trial never suffers.
#include "runner/device_slot.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/process_tree.h"
#include "base/status_testing.h"
#include "rpc/artifact_digest.h"
#include "runner/compare.h"
#include "runner/containment.h"
#include "runner/input_values.h"

namespace kiln::runner {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Gt;
using testing::HasSubstr;
using testing::SizeIs;

// Matches the message of a right program on a machine that may be busy.
testing::Matcher<std::string> NothingButNoise() {
  return testing::AnyOf(testing::IsEmpty(), testing::StartsWith("busy machine: "));
}

bool NotCancelled() { return false; }

DeviceSlotOptions TestOptions() {
  DeviceSlotOptions options;
  // The child has the soft limit of most machines, whatever limit this test has.
  options.child_command = {"/bin/sh",
                           "-c",
                           "ulimit -n 1024; exec \"$0\" \"$@\"",
                           "runner/kiln_runner",
                           "--child",
                           "--device",
                           "cpu",
                           "--threads",
                           "2"};
  options.device_name = "test device";
  return options;
}

void AddArg(v1::LaunchPlan& plan, const std::string& name, std::vector<int64_t> shape,
            v1::ArgSpec::Role role) {
  v1::ArgSpec& arg = *plan.add_args();
  arg.set_name(name);
  arg.set_dtype("float32");
  arg.mutable_shape()->Assign(shape.begin(), shape.end());
  arg.set_role(role);
  arg.set_alignment_bytes(64);
}

v1::Artifact Program(const std::string& name) {
  v1::Artifact artifact;
  artifact.set_device("cpu");
  auto binary = ReadFile("runner/testdata/" + name + ".so");
  KILN_CHECK(binary.ok(), "{}", Message(binary.status()));
  artifact.set_binary(*binary);
  v1::LaunchPlan& plan = *artifact.mutable_plan();
  AddArg(plan, "a", {4, 6}, v1::ArgSpec::INPUT);
  AddArg(plan, "b", {4, 6}, v1::ArgSpec::INPUT);
  AddArg(plan, "out", {4, 6}, v1::ArgSpec::OUTPUT);
  AddArg(plan, "scratch", {16}, v1::ArgSpec::WORKSPACE);
  plan.add_launches()->set_symbol("kiln_entry");
  artifact.set_digest(DigestOf(artifact));
  return artifact;
}

v1::MeasureRequest Request(const std::string& name) {
  v1::MeasureRequest request;
  *request.mutable_artifact() = Program(name);
  *request.mutable_reference() = Program("correct");
  request.set_reference_digest(request.reference().digest());
  request.set_seed(42);
  request.mutable_options()->set_timeout_ms(5000);
  return request;
}

Argument InputOf(const v1::MeasureRequest& request, int number) {
  const auto arguments = ParseArguments(request.artifact().plan());
  KILN_CHECK(arguments.ok(), "{}", Message(arguments.status()));
  return (*arguments)[static_cast<size_t>(number)];
}

class DeviceSlotTest : public testing::Test {
 protected:
  // Measures under the digest of the artifact's content.
  v1::MeasureReply Measure(v1::MeasureRequest request) {
    request.mutable_artifact()->set_digest(DigestOf(request.artifact()));
    auto reply = slot_.Measure(request, NotCancelled);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *reply : v1::MeasureReply();
  }
  void ExpectRight() {
    const v1::TrialResult result = Measure(Request("correct")).result();
    EXPECT_EQ(result.error(), v1::NO_ERROR) << result.message();
    EXPECT_THAT(result.costs_s(), SizeIs(1));
  }

  DeviceSlot slot_{TestOptions()};
};

TEST_F(DeviceSlotTest, MeasuresARightProgram) {
  v1::MeasureRequest request = Request("correct");
  request.mutable_options()->set_repeat(4);
  request.mutable_options()->set_min_repeat_ms(2);
  const v1::MeasureReply reply = Measure(request);
  const v1::TrialResult& result = reply.result();
  EXPECT_EQ(result.error(), v1::NO_ERROR) << result.message();
  EXPECT_THAT(result.message(), NothingButNoise());
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
  request.mutable_options()->set_flush_cache(true);
  // Flushing a large cache on a busy machine takes long.
  request.mutable_options()->set_timeout_ms(60'000);
  EXPECT_THAT(Measure(request).result().costs_s(), SizeIs(3));
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

// The reference has run twice already, as a trial would.
TEST_F(DeviceSlotTest, ALongReferenceIsNotRunAgainAsACandidate) {
  v1::MeasureRequest request = Request("slow");
  *request.mutable_reference() = Program("slow");
  request.set_reference_digest(request.reference().digest());
  request.mutable_options()->set_early_stop_ratio(10);
  const v1::MeasureReply reply = Measure(request);
  EXPECT_THAT(reply.result().costs_s(), testing::ElementsAre(reply.reference_cost_s()));
  EXPECT_THAT(reply.result().message(), HasSubstr("in one call"));
  EXPECT_FALSE(reply.result().stopped_early());
  EXPECT_EQ(reply.result().times().first_run_s(), 0);
  EXPECT_GT(reply.result().times().reference_s(), 0.3);
  // The final race runs it again.
  request.mutable_options()->set_early_stop_ratio(0);
  const v1::TrialResult again = Measure(request).result();
  EXPECT_THAT(again.message(), NothingButNoise());
  EXPECT_GT(again.times().first_run_s(), 0.1);
}

TEST_F(DeviceSlotTest, AShortReferenceIsReadAsACandidate) {
  v1::MeasureRequest request = Request("correct");
  request.mutable_options()->set_early_stop_ratio(10);
  request.mutable_options()->set_repeat(3);
  const v1::MeasureReply reply = Measure(request);
  EXPECT_THAT(reply.result().costs_s(), SizeIs(3));
  EXPECT_THAT(reply.result().message(), NothingButNoise());
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

// NaN equals NaN, and a constant output does not depend on the inputs. Nothing was checked, though
// nothing was wrong.
TEST_F(DeviceSlotTest, ReferencesThatProveLittleAreSaid) {
  EXPECT_EQ(Measure(Request("correct")).result().unchecked(), "");
  for (const auto& [program, why] :
       {std::pair{"all_nan", "output out of the reference is not finite in 24 of 24 elements"},
        std::pair{"constant", "output out of the reference is 0.5 in all 24 elements"}}) {
    v1::MeasureRequest request = Request(program);
    *request.mutable_reference() = Program(program);
    request.set_reference_digest(request.reference().digest());
    // The first round runs the reference, the second remembers it.
    for (int i = 0; i < 2; ++i) {
      const v1::TrialResult result = Measure(request).result();
      EXPECT_EQ(result.error(), v1::NO_ERROR) << result.message();
      EXPECT_EQ(result.unchecked(), why);
    }
    *request.mutable_artifact() = Program("correct");
    const v1::TrialResult wrong = Measure(request).result();
    EXPECT_EQ(wrong.error(), v1::WRONG_ANSWER_ERROR);
    EXPECT_EQ(wrong.unchecked(), "");
  }
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

// The programs are fast because the timed calls compute nothing.
TEST_F(DeviceSlotTest, AKeptAnswerIsWrong) {
  for (const char* program :
       {"keeps_answer", "keeps_by_first", "keeps_by_address", "leaves_outputs"}) {
    const v1::TrialResult result = Measure(Request(program)).result();
    EXPECT_EQ(result.error(), v1::WRONG_ANSWER_ERROR) << program;
    EXPECT_THAT(result.message(), HasSubstr("not in the last one, which had other inputs"));
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

// The program is right for all inputs, and computes for 20 ms if it does not know the inputs.
TEST_F(DeviceSlotTest, WhatACallOnNewInputsTakesCounts) {
  v1::MeasureRequest request = Request("keeps_by_all");
  request.mutable_options()->set_repeat(5);
  const v1::TrialResult result = Measure(request).result();
  EXPECT_EQ(result.error(), v1::NO_ERROR) << result.message();
  EXPECT_THAT(result.costs_s(), testing::ElementsAre(Gt(0.019)));
  EXPECT_TRUE(result.stopped_early());
  EXPECT_THAT(result.message(), HasSubstr("a call on new inputs takes"));
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
  request.mutable_options()->set_timeout_ms(400);
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
              "right in the first run, not in the last one, which had other inputs: output out: "
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
  if (missing.empty()) {
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

TEST_F(DeviceSlotTest, AsksForTheReferenceOnce) {
  v1::MeasureRequest request = Request("correct");
  request.clear_reference();
  EXPECT_THAT(slot_.Measure(request, NotCancelled),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("send the request again with")));
  ExpectRight();
  const v1::MeasureReply reply = Measure(request);
  EXPECT_EQ(reply.result().error(), v1::NO_ERROR);
  EXPECT_GT(reply.reference_cost_s(), 0);
  EXPECT_EQ(slot_.stats().references_run, 1);
  // Another seed gives other inputs.
  request.set_seed(43);
  EXPECT_THAT(slot_.Measure(request, NotCancelled),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("for seed 43")));
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

// Otherwise a wrong program would be right for every caller that measures against the reference
// that it replaces.
TEST_F(DeviceSlotTest, OtherCodeUnderTheReferencesDigestIsRefused) {
  v1::MeasureRequest request = Request("wrong_answer");
  const std::string wanted = request.reference_digest();
  *request.mutable_reference() = Program("wrong_answer");
  request.mutable_reference()->set_digest(wanted);
  EXPECT_THAT(slot_.Measure(request, NotCancelled),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("the reference came with digest")));
  EXPECT_EQ(Measure(Request("wrong_answer")).result().error(), v1::WRONG_ANSWER_ERROR);

  request = Request("correct");
  request.mutable_artifact()->mutable_plan()->mutable_args(0)->set_index_limit(1);
  EXPECT_THAT(slot_.Measure(request, NotCancelled),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("the artifact came with digest")));
  EXPECT_EQ(slot_.stats().references_run, 1);
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

TEST_F(DeviceSlotTest, ReferenceThatFailsIsAnErrorOfTheInfrastructure) {
  v1::MeasureRequest request = Request("correct");
  for (const char* name :
       {"null_store", "changing", "out_of_bounds", "modifies_input", "no_entry"}) {
    *request.mutable_reference() = Program(name);
    request.set_reference_digest(request.reference().digest());
    EXPECT_THAT(slot_.Measure(request, NotCancelled),
                StatusIs(StatusCode::kInternal, HasSubstr("reference program ")))
        << name;
  }
  ExpectRight();
}

// Otherwise a builder could pass off a program for other inputs as right by giving it as its own
// reference.
TEST_F(DeviceSlotTest, AReferenceMustGiveWhatIsKnown) {
  v1::MeasureRequest request = Request("correct");
  // The reference comes from a caller who knows no elements.
  ExpectRight();
  v1::KnownElements& known = *request.add_known();
  const UnsetBytes a = InputBytes(InputOf(request, 0), 0, 42, Content::kTimed);
  const UnsetBytes b = InputBytes(InputOf(request, 1), 1, 42, Content::kTimed);
  for (const int64_t i : {0, 7, 23}) {
    known.add_element(i);
    known.add_value(2 * ElementValue(DType::kFloat32, a, i) + ElementValue(DType::kFloat32, b, i));
  }
  EXPECT_EQ(Measure(request).result().error(), v1::NO_ERROR);
  EXPECT_EQ(slot_.stats().references_run, 2);
  EXPECT_EQ(Measure(request).result().error(), v1::NO_ERROR);
  EXPECT_EQ(slot_.stats().references_run, 2);
  request.mutable_artifact()->CopyFrom(Program("constant"));
  request.mutable_reference()->CopyFrom(Program("constant"));
  request.set_reference_digest(request.reference().digest());
  EXPECT_THAT(slot_.Measure(request, NotCancelled),
              StatusIs(StatusCode::kInternal,
                       AllOf(HasSubstr("it does not compute what was asked for: output out: "
                                       "element 0 of 24 is 0.5, expected"),
                             HasSubstr("3 of 3 elements differ"))));
  known.set_element(0, 24);
  EXPECT_THAT(slot_.Measure(request, NotCancelled), StatusIs(StatusCode::kInternal, testing::_));
  ExpectRight();
}

TEST_F(DeviceSlotTest, ReferenceThatHangsIsStopped) {
  DeviceSlotOptions options = TestOptions();
  options.reference_limit = absl::Milliseconds(300);
  DeviceSlot slot(options);
  v1::MeasureRequest request = Request("correct");
  *request.mutable_reference() = Program("infinite_loop");
  request.set_reference_digest(request.reference().digest());
  EXPECT_THAT(slot.Measure(request, NotCancelled),
              StatusIs(StatusCode::kInternal, HasSubstr("not finished after 300ms")));
}

TEST_F(DeviceSlotTest, ReferenceThatTakesLongerThanTheRequestAllowsSaysSo) {
  v1::MeasureRequest request = Request("correct");
  *request.mutable_reference() = Program("infinite_loop");
  request.set_reference_digest(request.reference().digest());
  request.set_reference_timeout_ms(300);
  EXPECT_THAT(slot_.Measure(request, NotCancelled),
              StatusIs(StatusCode::kOutOfRange, HasSubstr("not finished after 300ms")));
  ExpectRight();
}

TEST_F(DeviceSlotTest, ASampleOfTheOutputsIsCompared) {
  const auto sampled = [](const std::string& program, int64_t offset) {
    v1::MeasureRequest request = Request(program);
    v1::OutputSample& sample = *request.add_samples();
    for (const int64_t o : {offset, int64_t{0}}) sample.add_offset(o);
    for (int d = 0; d < 2; ++d) sample.add_stride(1);
    return request;
  };
  const v1::TrialResult right = Measure(sampled("correct", 0)).result();
  EXPECT_EQ(right.error(), v1::NO_ERROR) << right.message();
  EXPECT_EQ(right.sampled_outputs(), 24u);
  EXPECT_THAT(right.costs_s(), SizeIs(1));
  const v1::TrialResult wrong = Measure(sampled("wrong_answer", 0)).result();
  EXPECT_EQ(wrong.error(), v1::WRONG_ANSWER_ERROR);
  EXPECT_THAT(wrong.message(), HasSubstr("out at [0, 0] + [1, 1] * element: element [1, 3]"));
  const v1::TrialResult unwritten = Measure(sampled("unwritten", 0)).result();
  EXPECT_EQ(unwritten.error(), v1::WRONG_ANSWER_ERROR);
  EXPECT_THAT(unwritten.message(), HasSubstr("1 of 24 elements were not written"));
  EXPECT_EQ(Measure(sampled("out_of_bounds", 0)).result().error(), v1::RUNTIME_DEVICE_ERROR);
  EXPECT_THAT(Measure(sampled("correct", 1)).result().message(), HasSubstr("from 1 on, 1 apart"));
}

// The program has no third run: the outputs of its timed calls are checked instead.
TEST_F(DeviceSlotTest, ALongProgramRunsTwice) {
  ExpectRight();
  v1::MeasureRequest request = Request("slow_changing");
  request.mutable_options()->set_timeout_ms(60'000);
  const v1::TrialResult result = Measure(request).result();
  EXPECT_EQ(result.error(), v1::WRONG_ANSWER_ERROR);
  EXPECT_THAT(result.message(),
              HasSubstr("right in the first run, not in the last one, which had other inputs"));
  EXPECT_LT(result.times().last_run_s(), 1);
}

TEST_F(DeviceSlotTest, ALongProgramWithoutTimeForAnotherRunHasThatOfItsFirst) {
  ExpectRight();
  v1::MeasureRequest request = Request("slow_changing");
  request.mutable_options()->set_timeout_ms(2'000);
  v1::TrialResult result = Measure(request).result();
  EXPECT_EQ(result.error(), v1::NO_ERROR) << result.message();
  EXPECT_TRUE(result.stopped_early());
  ASSERT_THAT(result.costs_s(), SizeIs(1));
  EXPECT_NEAR(result.costs_s(0), 1.05, 0.3);
  EXPECT_EQ(result.times().timing_s(), 0);
  // A program that is far slower has no second run either.
  request.mutable_options()->set_timeout_ms(60'000);
  request.mutable_options()->set_early_stop_ratio(10);
  request.mutable_options()->set_best_cost_s(0.1);
  result = Measure(request).result();
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
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
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
  std::atomic<bool> cancel{false};
  std::thread hog([&] {
    v1::MeasureRequest request = Request("infinite_loop");
    request.mutable_options()->set_timeout_ms(600'000);
    EXPECT_THAT(slot_.Measure(request, [&] { return cancel.load(); }),
                StatusIs(StatusCode::kCancelled, HasSubstr("cancelled")));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
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

// The program's cost never gets well known, so it is called 100 times in 3 s, unless another trial
// comes.
TEST_F(DeviceSlotTest, IdleTimeMakesReadingsUntilAnotherTrialComes) {
  ExpectRight();
  v1::MeasureRequest idle = Request("uneven");
  idle.mutable_options()->set_number(1);
  idle.mutable_options()->set_idle_ms(300);
  const v1::TrialResult alone = Measure(idle).result();
  EXPECT_THAT(alone.costs_s(), SizeIs(testing::Ge(3)));
  idle.mutable_options()->set_timeout_ms(60'000);
  idle.mutable_options()->set_idle_ms(60'000);
  v1::TrialResult first;
  std::thread caller([&] { first = Measure(idle).result(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const v1::TrialResult second = Measure(Request("correct")).result();
  caller.join();
  EXPECT_EQ(first.error(), v1::NO_ERROR) << first.message();
  EXPECT_THAT(first.costs_s(), SizeIs(testing::AllOf(testing::Gt(1), testing::Lt(60))));
  EXPECT_EQ(second.error(), v1::NO_ERROR) << second.message();
  EXPECT_LT(second.times().run_wait_s(), 1);
  // The flag is no longer set.
  idle.mutable_options()->set_idle_ms(300);
  EXPECT_THAT(Measure(idle).result().costs_s(), SizeIs(testing::Ge(3)));
}

TEST(DeviceSlotStartTest, ChildThatDoesNotStartIsUnavailable) {
  DeviceSlotOptions options = TestOptions();
  options.child_command = {"/nonexistent/runner"};
  DeviceSlot missing(options);
  EXPECT_THAT(missing.Measure(Request("correct"), NotCancelled),
              StatusIs(StatusCode::kUnavailable, HasSubstr("/nonexistent/runner")));
  options.child_command = {"/bin/false"};
  DeviceSlot failing(options);
  EXPECT_THAT(failing.Measure(Request("correct"), NotCancelled),
              StatusIs(StatusCode::kUnavailable, HasSubstr("exit status 1")));
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
