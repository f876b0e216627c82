#include "runner/arguments.h"

#include "base/status_testing.h"

namespace kiln::runner {
namespace {

using testing::HasSubstr;

v1::LaunchPlan Plan() {
  v1::LaunchPlan plan;
  v1::ArgSpec& in = *plan.add_args();
  in.set_name("data");
  in.set_dtype("float32");
  in.add_shape(2);
  in.add_shape(3);
  v1::ArgSpec& out = *plan.add_args();
  out.set_name("conv");
  out.set_dtype("float16");
  out.add_shape(5);
  out.set_role(v1::ArgSpec::OUTPUT);
  out.set_alignment_bytes(128);
  return plan;
}

TEST(ArgumentsTest, SizesAndAlignments) {
  ASSERT_OK_AND_ASSIGN(const auto arguments, ParseArguments(Plan()));
  ASSERT_EQ(arguments.size(), 2u);
  EXPECT_EQ(arguments[0].bytes, 24);
  EXPECT_EQ(arguments[0].alignment_bytes, 64);
  EXPECT_EQ(arguments[1].bytes, 10);
  EXPECT_EQ(arguments[1].alignment_bytes, 128);
  EXPECT_EQ(TypeText(arguments[0]), "float32[2, 3]");
}

TEST(ArgumentsTest, ScalarsAreOneElement) {
  v1::LaunchPlan plan = Plan();
  plan.mutable_args(0)->clear_shape();
  ASSERT_OK_AND_ASSIGN(const auto arguments, ParseArguments(plan));
  EXPECT_EQ(arguments[0].elements, 1);
}

v1::PackedDim Dim(uint32_t axis, int64_t extent, int64_t step) {
  v1::PackedDim dim;
  dim.set_axis(axis);
  dim.set_extent(extent);
  dim.set_step(step);
  return dim;
}

// A packed input has the same fill as a plain tensor, and is larger by its padding.
TEST(ArgumentsTest, PackedInputs) {
  v1::LaunchPlan plan = Plan();
  ASSERT_OK_AND_ASSIGN(const auto plain, ParseArguments(plan));
  v1::ArgSpec& spec = *plan.mutable_args(0);
  spec.set_is_packed(true);
  *spec.add_packing() = Dim(1, 2, 2);
  *spec.add_packing() = Dim(0, 2, 1);
  *spec.add_packing() = Dim(1, 2, 1);
  ASSERT_OK_AND_ASSIGN(const auto packed, ParseArguments(plan));
  EXPECT_EQ(packed[0].elements, 6);
  EXPECT_EQ(packed[0].plain_bytes(), 24);
  EXPECT_EQ(packed[0].bytes, 32);
  EXPECT_EQ(PackingText(*packed[0].packing), "[2, 3] by [1: 2, 0: 1, 1: 1]");
  EXPECT_OK(CheckSameInterface(packed, plain));
  EXPECT_EQ(InputKey(packed[0], 0, 1), InputKey(plain[0], 0, 1));
}

struct Refusal {
  const char* name;
  void (*spoil)(v1::LaunchPlan& plan);
  const char* message;
};
class RefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(RefusalTest, NamesTheArgument) {
  v1::LaunchPlan plan = Plan();
  GetParam().spoil(plan);
  EXPECT_THAT(ParseArguments(plan),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusalTest,
    testing::Values(
        Refusal{"Dtype", [](v1::LaunchPlan& p) { p.mutable_args(0)->set_dtype("float31"); },
                "argument 0 'data': unknown dtype 'float31'"},
        Refusal{"ZeroExtent", [](v1::LaunchPlan& p) { p.mutable_args(0)->set_shape(1, 0); },
                "argument 0 'data': extent 0 in shape [2, 0]"},
        Refusal{"NegativeExtent", [](v1::LaunchPlan& p) { p.mutable_args(1)->set_shape(0, -4); },
                "argument 1 'conv': extent -4"},
        Refusal{"Overflow", [](v1::LaunchPlan& p) { p.mutable_args(0)->set_shape(0, INT64_MAX); },
                "too many elements"},
        Refusal{"Alignment", [](v1::LaunchPlan& p) { p.mutable_args(0)->set_alignment_bytes(48); },
                "alignment of 48 bytes"},
        Refusal{"LargeAlignment",
                [](v1::LaunchPlan& p) { p.mutable_args(0)->set_alignment_bytes(1u << 31); },
                "expected a power of two up to 4096"},
        Refusal{"IndexLimit", [](v1::LaunchPlan& p) { p.mutable_args(0)->set_index_limit(-1); },
                "index limit -1"},
        Refusal{"Range", [](v1::LaunchPlan& p) { p.mutable_args(0)->mutable_range()->set_low(1); },
                "argument 0 'data': range [1, 0)"},
        Refusal{"Run",
                [](v1::LaunchPlan& p) {
                  v1::ValueRange& range = *p.mutable_args(0)->mutable_range();
                  range.set_high(1);
                  range.set_run(2);
                },
                "in runs of 2 values, expected integers for runs"},
        Refusal{"Packing",
                [](v1::LaunchPlan& p) {
                  p.mutable_args(0)->set_is_packed(true);
                  *p.mutable_args(0)->add_packing() = Dim(0, 2, 1);
                },
                "argument 0 'data': packed [2, 3] by [0: 1] leaves out elements along axis 1"},
        Refusal{"PackedAxis",
                [](v1::LaunchPlan& p) {
                  p.mutable_args(0)->set_is_packed(true);
                  *p.mutable_args(0)->add_packing() = Dim(UINT32_MAX, 2, 1);
                },
                "argument 0 'data': packed along axis"},
        Refusal{"PackedOutput", [](v1::LaunchPlan& p) { p.mutable_args(1)->set_is_packed(true); },
                "argument 1 'conv': it is packed"},
        Refusal{"NoOutput", [](v1::LaunchPlan& p) { p.mutable_args()->RemoveLast(); },
                "without an output"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ArgumentsTest, InterfacesMustAgreeButForWorkspaces) {
  ASSERT_OK_AND_ASSIGN(const auto reference, ParseArguments(Plan()));
  v1::LaunchPlan plan = Plan();
  v1::ArgSpec& scratch = *plan.add_args();
  scratch.set_dtype("int8");
  scratch.set_role(v1::ArgSpec::WORKSPACE);
  plan.mutable_args(1)->set_name("renamed");
  ASSERT_OK_AND_ASSIGN(auto candidate, ParseArguments(plan));
  EXPECT_OK(CheckSameInterface(candidate, reference));

  candidate[0].index_limit = 7;
  EXPECT_THAT(CheckSameInterface(candidate, reference),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("index limit 7")));
  candidate[0].index_limit = reference[0].index_limit;
  candidate[0].range = ValueRange{0, 1};
  EXPECT_THAT(CheckSameInterface(candidate, reference),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("range [0, 1)")));
  candidate[0].role = v1::ArgSpec::WORKSPACE;
  EXPECT_THAT(CheckSameInterface(candidate, reference),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("0 inputs, the reference has 1")));
}

}  // namespace
}  // namespace kiln::runner
