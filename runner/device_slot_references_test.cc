// Runs whole trials in real child processes: the references that programs are compared with, and
// the samples of outputs.
#include "base/status_testing.h"
#include "runner/compare.h"
#include "runner/device_slot.h"
#include "runner/device_slot_testing.h"
#include "runner/input_values.h"

namespace kiln::runner {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

Argument InputOf(const v1::MeasureRequest& request, int number) {
  const auto arguments = ParseArguments(request.artifact().plan());
  KILN_CHECK(arguments.ok(), "{}", Message(arguments.status()));
  return (*arguments)[static_cast<size_t>(number)];
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
  EXPECT_THAT(again.message(), IsEmptyOrNoiseMark());
  EXPECT_GT(again.times().first_run_s(), 0.1);
}

TEST_F(DeviceSlotTest, AShortReferenceIsReadAsACandidate) {
  v1::MeasureRequest request = Request("correct");
  request.mutable_options()->set_early_stop_ratio(10);
  request.mutable_options()->set_repeat(3);
  const v1::MeasureReply reply = Measure(request);
  EXPECT_THAT(reply.result().costs_s(), SizeIs(3));
  EXPECT_THAT(reply.result().message(), IsEmptyOrNoiseMark());
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
TEST_F(DeviceSlotTest, AReferenceMustReproduceKnownElements) {
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

}  // namespace
}  // namespace kiln::runner
