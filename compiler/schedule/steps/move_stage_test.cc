// All tests of the MV step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/evaluate.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/source/parse.h"
#include "compiler/schedule/source/print.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {
namespace {

using testing::HasSubstr;

// The stages are x0 v1 g2 w3 s4 t5 u6 y7.
constexpr std::string_view kText = R"(
input x: float32[4, 6]
input v: float32[6, 5]
g[i: 4, j: 5] = sum(k: 6) x[i, k] * v[k, j]
input w: float32[6, 5]
input s: float32[5]
t[k: 6, j: 5] = w[k, j] * s[j]
u[i: 4, j: 5] = sum(k: 6) x[i, k] * t[k, j]
y[i: 4, j: 5] = max(g[i, j], 0.0) + u[i, j]
)";

StatusOr<State> Scheduled(std::string_view steps_text, std::string_view dag_text = kText) {
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(dag_text));
  KILN_ASSIGN_OR_RETURN(const std::vector<StepPtr> steps, ParseSteps(steps_text));
  return Replay(dag, steps);
}

std::string NamesOf(const State& state) {
  std::string names;
  for (int s = 0; s < state.num_stages(); ++s)
    names += (names.empty() ? "" : " ") + state.dag()->op(s).name();
  return names;
}

TEST(MoveStageStep, PrintsAsItWasRead) {
  constexpr std::string_view kSteps = R"([["MV", 3, 2]])";
  ASSERT_OK_AND_ASSIGN(const auto steps, ParseSteps(kSteps));
  EXPECT_EQ(PrintSteps(steps), kSteps);
  EXPECT_TRUE(steps[0]->IsExtension());
  ASSERT_OK_AND_ASSIGN(const auto other, ParseSteps(R"([["MV", 3, 1]])"));
  EXPECT_NE(steps[0]->Hash(), other[0]->Hash());
}

TEST(MoveStageStep, ComputesTheSameInAnotherOrder) {
  ASSERT_OK_AND_ASSIGN(const State state,
                       Scheduled(R"([["MV", 3, 2], ["MV", 4, 3], ["MV", 5, 4]])"));
  EXPECT_EQ(NamesOf(state), "x v w s t g u y");
  for (const int s : {4, 5, 6, 7}) EXPECT_EQ(state.stage(s).op, state.dag()->node(s).op) << s;
  const auto inputs = dag::RandomInputs(*state.initial_dag(), 7, ir::RandomKind::kSmallIntegers);
  ASSERT_OK_AND_ASSIGN(const auto before, dag::Evaluate(*state.initial_dag(), inputs));
  ASSERT_OK_AND_ASSIGN(const auto after, dag::Evaluate(*state.dag(), inputs));
  EXPECT_EQ(after, before);
}

TEST(MoveStageStep, StagesBehindItKeepTheirLoopsAndPlaces) {
  ASSERT_OK_AND_ASSIGN(const State state,
                       Scheduled(R"([["SP", 7, 0, 4, [2], 1], ["CA", 6, 7, 0], ["MV", 3, 2]])"));
  EXPECT_EQ(state.stage(7).loops.size(), 3u);
  EXPECT_EQ(state.attach(6), (Attach{.kind = Attach::kIter, .stage = 7, .loop = 0}));
}

TEST(MoveStageStep, IsReadBackFromSource) {
  constexpr std::string_view kSteps =
      R"([["SP", 6, 0, 4, [2], 1], ["MV", 3, 2], ["SP", 3, 0, 4, [4], 1], ["MV", 4, 3], )"
      R"(["FU", 4, [0, 1]]])";
  // g, the stage 4 now, was split.
  EXPECT_THAT(Scheduled(kSteps).status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("split")));
  constexpr std::string_view kMoved =
      R"([["SP", 6, 0, 4, [2], 1], ["MV", 3, 2], ["MV", 4, 3], ["SP", 4, 0, 4, [4], 1]])";
  ASSERT_OK_AND_ASSIGN(const State state, Scheduled(kMoved));
  const std::string source = PrintPrimitives(state);
  EXPECT_THAT(source, HasSubstr("s[w].move_before(s[g])\n"));
  ASSERT_OK_AND_ASSIGN(const State again, ParsePrimitives(state.initial_dag(), source));
  EXPECT_EQ(PrintSteps(again.steps()), kMoved) << source;
}

TEST(MoveStageStep, Refuses) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([["MV", 8, 2]])", "the state has stages 0 to 7"},
      {R"([["MV", 3, 3]])", "does not stand behind stage 3; expected stage 0 to 2"},
      {R"([["MV", 3, -1]])", "-1"},
      {R"([["MV", 3, 1]])", "stage 1 (v) is an input as well"},
      {R"([["MV", 6, 3]])", "stage 6 (u) reads stage 5, which does not stand before stage 3"},
      {R"([["MV", 7, 6]])", "an output does not move"},
      {R"([["SP", 2, 0, 4, [2], 1], ["MV", 3, 2]])", "stage 2 (g): the stage was split"},
      {R"([["PR", 2, 0, "auto_unroll_max_step$64"], ["MV", 3, 2]])",
       "stage 2 (g): a step has changed the stage"},
      {R"([["CA", 2, 7, 0], ["MV", 3, 2]])", "stage 2 (g): the stage is not computed at root"}};
  for (const auto& [steps, message] : cases) {
    EXPECT_THAT(Scheduled(steps).status(),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)))
        << steps;
  }
}

}  // namespace
}  // namespace kiln::schedule
