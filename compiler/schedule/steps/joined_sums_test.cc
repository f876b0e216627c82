// All tests of the form of CHW that joins sums.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/status_testing.h"
#include "compiler/dag/evaluate.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/source/parse.h"
#include "compiler/schedule/source/print.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {
namespace {

using testing::HasSubstr;

// The stages are x0 v1 g2 w3 u4 y5, and x0 v1 w2 g3 u4 y5 after kMove.
constexpr std::string_view kTwoSums = R"(
input x: float32[4, 6]
input v: float32[6, 5]
input w: float32[6, 5]
g[i: 4, j: 5] = sum(k: 6) x[i, k] * v[k, j]
u[i: 4, j: 5] = sum(n: 6) w[n, j] * x[i, n]
y[i: 4, j: 5] = max(g[i, j], 0.0) * g[i, j] + u[i, j]
)";
constexpr std::string_view kMove = R"(["MV", 3, 2])";

StatusOr<State> Scheduled(std::string_view steps_text, std::string_view dag_text = kTwoSums) {
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(dag_text));
  KILN_ASSIGN_OR_RETURN(const std::vector<StepPtr> steps, ParseSteps(steps_text));
  return Replay(dag, steps);
}

// Applies the steps behind kMove.
StatusOr<State> Moved(std::string_view steps) {
  return Scheduled(fmt::format("[{}, {}", kMove, steps.substr(1)));
}

TEST(JoinedSums, PrintAsTheyWereRead) {
  constexpr std::string_view kText = R"([["CHW", 3, "local", [4]]])";
  ASSERT_OK_AND_ASSIGN(const auto steps, ParseSteps(kText));
  EXPECT_EQ(PrintSteps(steps), kText);
  EXPECT_TRUE(steps[0]->IsExtension());
  ASSERT_OK_AND_ASSIGN(const auto alone, ParseSteps(R"([["CHW", 3, "local"]])"));
  EXPECT_FALSE(alone[0]->IsExtension());
  EXPECT_NE(steps[0]->Hash(), alone[0]->Hash());
}

TEST(JoinedSums, AreReadBackFromSource) {
  constexpr std::string_view kText =
      R"([["MV", 3, 2], ["CHW", 3, "local", [4]], ["SP", 3, 2, 6, [2], 1], ["SP", 5, 1, 5, [5], 1]])";
  ASSERT_OK_AND_ASSIGN(const State state, Scheduled(kText));
  const std::string source = PrintPrimitives(state);
  EXPECT_THAT(source, HasSubstr("g_u_local = s.cache_write(g, \"local\", [u])\n"));
  ASSERT_OK_AND_ASSIGN(const State again, ParsePrimitives(state.initial_dag(), source));
  EXPECT_EQ(PrintSteps(again.steps()), kText) << source;
}

TEST(JoinedSums, AreOneReductionOfSeveralValues) {
  ASSERT_OK_AND_ASSIGN(const State state, Moved(R"([["CHW", 3, "local", [4]]])"));
  const dag::Operator& joined = state.dag()->op(3);
  EXPECT_EQ(joined.name(), "g.u.local");
  EXPECT_EQ(joined.num_outputs(), 2);
  EXPECT_EQ(joined.num_inputs(), 3) << "x is read once";
  EXPECT_EQ(state.stage(3).loops.size(), 3u);
  for (const int copy : {4, 5}) {
    EXPECT_EQ(state.stage(copy).loops.size(), 2u) << copy;
    EXPECT_EQ(state.dag()->node(copy).inputs,
              (std::vector<dag::Tensor>{{.op = 3, .output = copy - 4}}));
  }
  const auto inputs = dag::RandomInputs(*state.initial_dag(), 7, ir::RandomKind::kSmallIntegers);
  ASSERT_OK_AND_ASSIGN(const auto before, dag::Evaluate(*state.initial_dag(), inputs));
  ASSERT_OK_AND_ASSIGN(const auto after, dag::Evaluate(*state.dag(), inputs));
  EXPECT_EQ(after, before);
}

TEST(JoinedSums, Refuse) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([["CHW", 3, "local", [0]]])", "a placeholder is not written"},
      {R"([["CHW", 3, "local", [6]]])", "stage 6 does not exist, the state has stages 0 to 5"},
      {R"([["CHW", 3, "local", [-1]]])", "-1"},
      {R"([["CHW", 4, "local", [3]]])", "stage 3 stands behind stage 4"},
      {R"([["CHW", 3, "local", [3]]])", "stage 3 stands behind stage 3"},
      {R"([["CHW", 3, "local", [5]]])", "stage 5 (y) is no sum of one value"},
      {R"([["SP", 4, 0, 4, [2], 1], ["CHW", 3, "local", [4]]])", "was split or fused before"},
      {R"([["CA", 4, 5, 0], ["CHW", 3, "local", [4]]])", "stage 4 (u) is not computed at root"}};
  for (const auto& [steps, message] : cases) {
    EXPECT_THAT(Moved(steps).status(), StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)))
        << steps;
  }
}

TEST(JoinedSums, RefuseOtherAxesAndLaterInputs) {
  constexpr std::string_view kOthers = R"(
input x: float32[4, 6]
a[i: 4] = sum(k: 6) x[i, k]
b[i: 4] = sum(k: 3) x[i, k]
input z: float32[4, 6]
c[i: 4] = sum(k: 6) z[i, k]
y[i: 4] = a[i] + b[i] + c[i]
)";
  EXPECT_THAT(Scheduled(R"([["CHW", 1, "local", [2]]])", kOthers).status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("other axes than a")));
  EXPECT_THAT(Scheduled(R"([["CHW", 1, "local", [4]]])", kOthers).status(),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("reads stage 3, which does not stand before stage 1")));
}

// The stages are x0 m1 s2 y3.
constexpr std::string_view kLogSoftmax = R"(
input x: float16[5, 70]
m[i: 5] = max(k: 70) float32(x[i, k]) * 3.0
s[i: 5] = sum(n: 70) exp(float32(x[i, n]) * 3.0 - m[i])
y[i: 5, k: 70] = float32(x[i, k]) * 3.0 - m[i] - log(s[i])
)";

TEST(JoinedSums, AMaximumAndTheSumBelowIt) {
  ASSERT_OK_AND_ASSIGN(const State state, Scheduled(R"([["CHW", 1, "global", [2]]])", kLogSoftmax));
  const dag::Dag& dag = *state.dag();
  const dag::Operator& pair = dag.op(1);
  EXPECT_EQ(pair.name(), "m.s.global");
  EXPECT_EQ(pair.reduction().kind, dag::Combiner::kCustom);
  EXPECT_EQ(pair.num_outputs(), 2);
  EXPECT_EQ(pair.num_inputs(), 1) << "x";
  EXPECT_FALSE(dag.op(2).is_reduction());
  EXPECT_FALSE(dag.op(3).is_reduction());
  // The text is read back as it was printed.
  const std::string text = dag::PrintDag(dag);
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr again, dag::ParseDag(text));
  EXPECT_EQ(dag::PrintDag(*again), text);
}

TEST(JoinedSums, AMaximumAndTheSumBelowItAreWhatTheyWere) {
  ASSERT_OK_AND_ASSIGN(const State state, Scheduled(R"([["CHW", 1, "global", [2]]])", kLogSoftmax));
  // The last row holds nothing but minus infinity, and the one before it an infinite value.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ir::NDArray x(ir::kFloat16, {5, 70});
  for (int64_t i = 0; i < x.num_elements(); ++i)
    x.SetDouble(i, 0.01 * static_cast<double>(i % 97) - 0.4);
  for (int64_t i = 0; i < 70; i += 3) x.SetDouble(i, -kInfinity);
  x.SetDouble(3 * 70 + 9, kInfinity);
  for (int64_t i = 4 * 70; i < 5 * 70; ++i) x.SetDouble(i, -kInfinity);
  ASSERT_OK_AND_ASSIGN(const auto want, dag::Evaluate(*state.initial_dag(), {&x, 1}));
  ASSERT_OK_AND_ASSIGN(const auto got, dag::Evaluate(*state.dag(), {&x, 1}));
  for (int64_t i = 0; i < want[0].num_elements(); ++i) {
    const double a = want[0].GetDouble(i), b = got[0].GetDouble(i);
    if (std::isnan(a) || std::isinf(a)) {
      EXPECT_EQ(std::isnan(a), std::isnan(b)) << i << ": " << a << " and " << b;
    } else {
      EXPECT_NEAR(a, b, 1e-5) << i;
    }
  }
}

TEST(JoinedSums, OnlyTheSumBelowAMaximumJoinsIt) {
  const auto joined = [](std::string_view max, std::string_view sum) {
    const std::string text = fmt::format(
        "input x: float32[2, 5, 70]\nm[i: 5] = max(k: 70) {}\ns[i: 5] = sum(k: 70) {}\n"
        "y[i: 5] = m[i] + s[i]\n",
        max, sum);
    return Scheduled(R"([["CHW", 1, "global", [2]]])", text).status();
  };
  const auto is_refused = StatusIs(StatusCode::kInvalidArgument,
                                   HasSubstr("expected one sum of exponentials below it"));
  EXPECT_OK(joined("x[0, i, k]", "exp(x[0, i, k] - m[i])"));
  EXPECT_OK(joined("x[0, i, k] + x[1, i, k]", "exp(x[0, i, k] + x[1, i, k] - m[i])"));
  EXPECT_THAT(joined("x[0, i, k]", "exp(x[1, i, k] - m[i])"), is_refused) << "of something else";
  EXPECT_THAT(joined("x[0, i, k]", "exp(m[i] - x[0, i, k])"), is_refused);
  EXPECT_THAT(joined("x[0, i, k]", "exp(x[0, i, k] - m[4 - i])"), is_refused) << "another row's";
  EXPECT_THAT(joined("x[0, i, k]", "exp(x[0, i, k] - m[i]) * 2.0"), is_refused);
  EXPECT_THAT(joined("x[0, i, k]", "x[0, i, k] - m[i]"), is_refused);
}

}  // namespace
}  // namespace kiln::schedule
