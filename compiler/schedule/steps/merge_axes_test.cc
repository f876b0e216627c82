// All tests of the MA step.
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/source/print.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {
namespace {

using testing::HasSubstr;

// The stages are A0 B1(i j) C2(i j).
StatusOr<State> Scheduled(std::string_view text) {
  KILN_ASSIGN_OR_RETURN(const std::vector<StepPtr> steps, ParseSteps(text));
  return Replay(TwoElementwise(4, 6), steps);
}

TEST(MergeAxesStep, PrintsAsItWasRead) {
  constexpr std::string_view kText = R"([["MA", 1, 0, 2]])";
  ASSERT_OK_AND_ASSIGN(const auto steps, ParseSteps(kText));
  EXPECT_EQ(PrintSteps(steps), kText);
  EXPECT_TRUE(steps[0]->IsExtension());
  ASSERT_OK_AND_ASSIGN(const State state, Scheduled(kText));
  EXPECT_THAT(PrintPrimitives(state), HasSubstr("s[B].merge_axes(0, 2)\n"));
  EXPECT_THAT(PrintLoops(state), HasSubstr("for i_j (0,24)\n"));
}

TEST(MergeAxesStep, AllStagesOfTheAxesHaveFreshLoops) {
  ASSERT_OK_AND_ASSIGN(const State state, Scheduled(R"([["CI", 1], ["MA", 1, 0, 2]])"));
  for (const int s : {1, 2}) EXPECT_EQ(state.stage(s).loops.size(), 1u) << s;
  EXPECT_EQ(state.attach(1).kind, Attach::kInlined);
  EXPECT_EQ(state.dag()->op(0).shape(), (std::vector<int64_t>{24}));
  EXPECT_EQ(state.initial_dag()->op(0).shape(), (std::vector<int64_t>{4, 6}));
}

TEST(MergeAxesStep, Refuses) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([["MA", 0, 0, 2]])", "merge axes #0 (MA) of stage 0 (A): a placeholder has no loops"},
      {R"([["MA", 1, 1, 2]])", "2 axes from 1 on are not two or more of the 2 of B"},
      {R"([["MA", 1, 0, 1]])", "1 axes from 0 on"},
      {R"([["SP", 2, 0, 4, [2], 1], ["MA", 1, 0, 2]])", "stage 2 (C): the stage was split"},
      {R"([["CA", 1, 2, 0], ["MA", 1, 0, 2]])", "stage 1 (B) is computed at a loop"}};
  for (const auto& [steps, message] : cases) {
    EXPECT_THAT(Scheduled(steps).status(),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)))
        << steps;
  }
}

}  // namespace
}  // namespace kiln::schedule
