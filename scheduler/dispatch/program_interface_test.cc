#include "scheduler/dispatch/program_interface.h"

#include "base/status_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

constexpr char kText[] = R"(@keep_order
input W: float32[16, 4]
@range(1, 9)
input ids: int32[8]
Y[i: 8, d: 4] = W[ids[i], d] * 2.0
)";

class ProgramInterfaceTest : public testing::Test {
 protected:
  ProgramInterfaceTest() {
    const auto text = dag::ParseDagText(kText);
    KILN_CHECK(text.ok(), "{}", Message(text.status()));
    arguments_ = ArgumentsOf(*text);
    plan_.mutable_args()->Add(arguments_.begin(), arguments_.end());
  }

  void ExpectRefused(const std::string& why) {
    EXPECT_THAT(CheckPlan(arguments_, plan_),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(why)));
  }

  std::vector<v1::ArgSpec> arguments_;
  v1::LaunchPlan plan_;
};

TEST_F(ProgramInterfaceTest, IsWhatTheComputationSays) {
  ASSERT_EQ(arguments_.size(), 3u);
  EXPECT_EQ(arguments_[1].name(), "ids");
  EXPECT_EQ(arguments_[1].index_limit(), 16);
  EXPECT_EQ(arguments_[1].range().high(), 9);
  EXPECT_EQ(arguments_[2].role(), v1::ArgSpec::OUTPUT);
  EXPECT_OK(CheckPlan(arguments_, plan_));
  plan_.add_args()->set_role(v1::ArgSpec::WORKSPACE);
  plan_.mutable_args(0)->set_is_packed(true);
  EXPECT_OK(CheckPlan(arguments_, plan_));
}

TEST_F(ProgramInterfaceTest, OtherExtentsAreAnotherProgram) {
  plan_.mutable_args(2)->set_shape(0, 4);
  ExpectRefused(
      "argument 2 of the program is OUTPUT float32[4, 4] Y, expected OUTPUT float32[8, 4] Y");
}

TEST_F(ProgramInterfaceTest, OtherInputsAreAnotherProgram) {
  plan_.mutable_args(1)->clear_range();
  ExpectRefused("expected INPUT int32[8] ids with indices below 16 with values in [1, 9)");
  plan_.mutable_args(1)->mutable_range()->set_low(1);
  plan_.mutable_args(1)->mutable_range()->set_high(9);
  plan_.mutable_args(1)->mutable_range()->set_run(2);
  ExpectRefused("with values in [1, 9), ascending in runs of 2, expected INPUT int32[8] ids");
  plan_.mutable_args(1)->mutable_range()->clear_run();
  plan_.mutable_args(1)->set_index_limit(8);
  ExpectRefused("indices below 8");
}

TEST_F(ProgramInterfaceTest, NamesTypesAndRolesCount) {
  v1::ArgSpec& first = *plan_.mutable_args(0);
  first.set_name("V");
  ExpectRefused("INPUT float32[16, 4] V");
  first.set_name("W");
  first.set_dtype("float16");
  ExpectRefused("INPUT float16[16, 4] W");
  first.set_dtype("float32");
  first.set_role(v1::ArgSpec::OUTPUT);
  ExpectRefused("OUTPUT float32[16, 4] W");
}

TEST_F(ProgramInterfaceTest, NoneIsMissingAndNoneIsMore) {
  plan_.mutable_args()->RemoveLast();
  ExpectRefused("2 arguments, expected 3");
  plan_.mutable_args()->Add()->CopyFrom(arguments_[2]);
  plan_.mutable_args()->Add()->CopyFrom(arguments_[2]);
  ExpectRefused("argument 3 of the program is OUTPUT float32[8, 4] Y, expected a workspace");
}

}  // namespace
}  // namespace kiln::scheduler
