// PR steps for every hint of the table (ir/hints.h).
#include <gtest/gtest.h>

#include <algorithm>

#include "base/status_testing.h"
#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/source/print.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

using testing::HasSubstr;

TEST(Hints, AreSetAndPrintedByTheirNames) {
  for (const ir::HintRow& row : ir::kHints) {
    SCOPED_TRACE(row.pragma);
    const int32_t value = std::min(2, row.most);
    State state(MatmulRelu(2, 4, 8));
    ASSERT_OK(state.Apply(HintStep(2, row.hint, value)));
    EXPECT_EQ(state.stage(2).hints[row.hint], value);
    const std::string json = fmt::format(R"([["PR", 2, 0, "{}${}"]])", row.pragma, value);
    EXPECT_EQ(PrintSteps(state.steps()), json);
    ASSERT_OK_AND_ASSIGN(const auto parsed, ParseSteps(json));
    EXPECT_EQ(parsed[0]->Hash(), state.steps()[0]->Hash());
    EXPECT_THAT(PrintLoops(state),
                HasSubstr(fmt::format("C {}: {}\nfor i (0,2)\n", row.word, value)));
    EXPECT_THAT(PrintPrimitives(state),
                HasSubstr(fmt::format("s[C].pragma(C_i, \"{}\", {})\n", row.pragma, value)));
    // A value of 0 is the same as no hint.
    ASSERT_OK(state.Apply(HintStep(2, row.hint, 0)));
    EXPECT_EQ(state.stage(2).hints, ir::Hints());
    EXPECT_EQ(PrintLoops(state), PrintLoops(State(MatmulRelu(2, 4, 8))));
  }
}

TEST(Hints, AreBounded) {
  for (const ir::HintRow& row : ir::kHints) {
    const int64_t beyond = int64_t{row.most} + 1;
    ASSERT_OK_AND_ASSIGN(const auto steps,
                         ParseSteps(fmt::format(R"([["PR", 2, 0, "{}${}"]])", row.pragma, beyond)));
    State state(MatmulRelu(2, 4, 8));
    const bool is_number = beyond <= std::numeric_limits<int32_t>::max();
    EXPECT_THAT(state.Apply(steps[0]),
                StatusIs(StatusCode::kInvalidArgument,
                         HasSubstr(is_number ? fmt::format("{} {}: expected 0 to {}", row.pragma,
                                                           beyond, row.most)
                                             : "unknown pragma")));
    EXPECT_EQ(state.stage(2).hints, ir::Hints());
    ASSERT_OK(state.Apply(HintStep(2, row.hint, row.most)));
  }
}

// Only the value may be chosen anew by a search.
TEST(Hints, ValuesOfOneStageHaveOneShape) {
  for (const ir::HintRow& row : ir::kHints) {
    const StepPtr one = HintStep(2, row.hint, 1), two = HintStep(2, row.hint, 2);
    EXPECT_NE(one->Hash(), two->Hash());
    EXPECT_EQ(one->ShapeHash(), two->ShapeHash());
    EXPECT_NE(one->ShapeHash(), HintStep(1, row.hint, 1)->ShapeHash());
    EXPECT_EQ(one->IsExtension(), row.is_extension);
    EXPECT_EQ(HintOf(*two, row.hint), 2);
    for (const ir::HintRow& other : ir::kHints) {
      if (other.hint == row.hint) continue;
      EXPECT_FALSE(HintOf(*two, other.hint)) << row.pragma << " " << other.pragma;
      EXPECT_NE(one->ShapeHash(), HintStep(2, other.hint, 1)->ShapeHash());
    }
  }
}

}  // namespace
}  // namespace kiln::schedule
