// All tests of the LA step.
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/schedule/buffer_shape.h"
#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/source/print.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {
namespace {

using testing::HasSubstr;

// The stages are A0 B1 C2(i j k) D3.
StatusOr<State> Scheduled(std::string_view text) {
  KILN_ASSIGN_OR_RETURN(const std::vector<StepPtr> steps, ParseSteps(text));
  return Replay(MatmulRelu(8, 12, 16), steps);
}

TEST(Layout, PrintsAsItWasRead) {
  constexpr std::string_view kText = R"([["LA", 2, [1, 0]]])";
  ASSERT_OK_AND_ASSIGN(const auto steps, ParseSteps(kText));
  EXPECT_EQ(PrintSteps(steps), kText);
  ASSERT_OK_AND_ASSIGN(const State state, Scheduled(kText));
  EXPECT_THAT(PrintLoops(state), HasSubstr("C layout: j, i\nfor i (0,8)\n"));
  EXPECT_THAT(PrintPrimitives(state), HasSubstr("s[C].layout(1, 0)\n"));
}

TEST(Layout, IsAnOrderOfTheAxes) {
  ASSERT_OK_AND_ASSIGN(State state, Scheduled(R"([["LA", 2, [1, 0]]])"));
  EXPECT_EQ(state.stage(2).layout, (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(BufferShape(state.stage(2), std::vector<int64_t>{3, 5}), (std::vector<int64_t>{5, 3}));
  ASSERT_OK_AND_ASSIGN(auto steps, ParseSteps(R"([["SA", 2, 1, 8, 4]])"));
  ASSERT_OK(state.Apply(steps[0]));
  EXPECT_EQ(BufferShape(state.stage(2), std::vector<int64_t>{3, 5}), (std::vector<int64_t>{5, 4}))
      << "the rows of axis 1 are of axis 0 now";
  EXPECT_EQ(BufferShape(state.stage(2), std::vector<int64_t>{9, 5}), (std::vector<int64_t>{5, 12}));
  ASSERT_OK_AND_ASSIGN(state, Scheduled(R"([["LA", 2, [1, 0]], ["LA", 2, [0, 1]]])"));
  EXPECT_TRUE(state.stage(2).layout.empty());
}

TEST(Layout, Refuses) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(["LA", 0, [1, 0]])", "layout #0 (LA) of stage 0 (A): a placeholder has no loops"},
      {R"(["LA", 3, [1, 0]])", "of stage 3 (D): an output's buffer is the caller's"},
      {R"(["LA", 2, [0, 2]])",
       "[0, 2] is not an order of the 2 spatial axes; expected each number from 0 once"},
      {R"(["LA", 2, []])", "[] is not an order of the 2 spatial axes"},
      {R"(["LA", 2, 1])", "expected order as a list of integers"}};
  for (const auto& [step, message] : cases) {
    EXPECT_THAT(Scheduled(fmt::format("[{}]", step)).status(),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)));
  }
}

// Swizzling already avoids bank conflicts, but units read whole lines of 128 bytes faster.
TEST(Layout, SwizzledRowsArePaddedToWholeLinesAlone) {
  const auto shape = [](std::string_view align, int64_t row) {
    const State state = *Scheduled(fmt::format("[{}]", align));
    return BufferShape(state.stage(2), std::vector<int64_t>{3, row}, /*is_swizzled=*/true);
  };
  for (const std::string_view align :
       {R"(["SA", 2, 0, 8, 4])", R"(["SA", 2, 0, 32, 4])", R"(["SA", 2, 0, 16, 0])"})
    EXPECT_EQ(shape(align, 40), (std::vector<int64_t>{3, 40})) << align;
  EXPECT_EQ(shape(R"(["SA", 2, 0, 32, 0])", 40), (std::vector<int64_t>{3, 64}));
  EXPECT_EQ(shape(R"(["SA", 2, 0, 32, 0])", 64), (std::vector<int64_t>{3, 64}));
  EXPECT_EQ(shape(R"(["SA", 2, 0, 64, 0])", 65), (std::vector<int64_t>{3, 128}));
}

// Only the order may be chosen anew by a search.
TEST(Layout, OrdersOfOneStageHaveOneShape) {
  ASSERT_OK_AND_ASSIGN(const auto steps, ParseSteps(R"([["LA", 2, [1, 0]], ["LA", 2, [0, 1]],)"
                                                    R"( ["LA", 1, [0, 1]]])"));
  EXPECT_NE(steps[0]->Hash(), steps[1]->Hash());
  EXPECT_EQ(steps[0]->ShapeHash(), steps[1]->ShapeHash());
  EXPECT_NE(steps[1]->ShapeHash(), steps[2]->ShapeHash());
  EXPECT_TRUE(steps[0]->IsExtension());
}

}  // namespace
}  // namespace kiln::schedule
