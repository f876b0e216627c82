// Schedules as text: a printed schedule reads back as the same one, and errors are reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/status_testing.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/random_schedule_testing.h"
#include "compiler/schedule/source/parse.h"
#include "compiler/schedule/source/print.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

using testing::HasSubstr;

State Scheduled(const dag::DagPtr& dag, std::string_view steps) {
  StatusOr<std::vector<StepPtr>> parsed = ParseSteps(steps);
  KILN_CHECK(parsed.ok(), "{}", Message(parsed.status()));
  StatusOr<State> state = Replay(dag, *parsed);
  KILN_CHECK(state.ok(), "{}", Message(state.status()));
  return *std::move(state);
}

// The stages are x0 v1 g2 w3 u4 y5.
dag::DagPtr TwoProducts() {
  StatusOr<dag::DagPtr> dag = dag::ParseDag(R"(
input x: float32[4, 6]
input v: float32[6, 5]
g[i: 4, j: 5] = sum(k: 6) x[i, k] * v[k, j]
input w: float32[6, 5]
u[i: 4, j: 5] = sum(k: 6) x[i, k] * w[k, j]
y[i: 4, j: 5] = g[i, j] + u[i, j]
)");
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  return *std::move(dag);
}

// Returns the steps without the extents that SP steps note, which have no effect.
std::string StepsText(const State& state) {
  std::string text;
  for (const StepPtr& step : state.steps()) {
    const auto* split = As<SplitStep>(*step);
    text += split == nullptr
                ? step->ToJson()
                : SplitStep(split->stage_id, split->loop, 0, split->lengths, split->inner_to_outer)
                      .ToJson();
  }
  return text;
}

void CheckRoundTrip(const State& state) {
  const std::string printed = PrintPrimitives(state);
  StatusOr<State> read = ParsePrimitives(state.initial_dag(), printed);
  ASSERT_TRUE(read.ok()) << Message(read.status()) << "\n" << printed;
  EXPECT_EQ(StepsText(*read), StepsText(state)) << printed;
  EXPECT_EQ(PrintLoops(*read, false), PrintLoops(state, false)) << printed;
  EXPECT_EQ(PrintPrimitives(*read), printed);
}

TEST(Source, EveryKindOfStep) {
  const State states[] = {
      Scheduled(
          Softmax(64, 100),
          R"([["CHW", 4, "local"], ["SP", 3, 1, 100, [10], 1], ["RF", 3, 2, 1], ["CHR", 0, "shared", [1]], )"
          R"(["FU", 7, [0, 1]], ["SP", 7, 0, 6400, [10, 8], 0], ["FSP", 6, 0, 5, 2], ["FFSP", 6, 3, [5], 1, 1], )"
          R"(["FFSP", 6, 3, [5, 5], 0, 0], ["RE", 7, [0, 2, 1]], ["CI", 3], ["CA", 5, 6, 0], ["CR", 5], )"
          R"(["AN", 7, 0, 5], ["AN", 7, 1, 2], ["SA", 4, 0, 8, 1], ["LA", 6, [1, 0]], ["BF", 7, 2], )"
          R"(["BF", 7, 4, 1], ["PR", 4, 1, "auto_unroll_max_step$64"], ["PR", 7, 0, "min_blocks$2"], )"
          R"(["PR", 7, 2, "register_buffering$1"], ["PR", 5, 0, "debug_skip_region"]])"),
      Scheduled(ReduceAll(dag::Combiner::kSum, 4, 8),
                R"([["CHW", 1, "local"], ["FU", 2, []], ["CA", 1, 2, 0], ["SP", 2, 0, 1, [], 1]])"),
      Scheduled(MatmulRelu(8, 8, 8), R"([["CHR", 1, "transposed", [2], [1, 0]]])"),
      Scheduled(TwoElementwise(4, 6), R"([["MA", 1, 0, 2], ["SP", 1, 0, 24, [8], 1]])"),
      Scheduled(TwoProducts(),
                R"([["SP", 4, 0, 4, [2], 1], ["MV", 3, 2], ["SP", 3, 0, 4, [4], 1]])"),
      Scheduled(Attention(2, 32, 48, 16),
                R"([["OS", 8, 16, 32, 2, 3, 1], ["PR", 8, 0, "min_blocks$2"]])"),
  };
  std::set<std::string_view> kinds;
  for (const State& state : states) {
    CheckRoundTrip(state);
    for (const StepPtr& step : state.steps()) kinds.insert(step->tag());
  }
  for (const std::string_view tag : StepTags()) EXPECT_TRUE(kinds.contains(tag)) << tag;
}

TEST(Source, EveryAnnotation) {
  for (int annotation = 1; annotation <= 12; ++annotation)
    CheckRoundTrip(
        Scheduled(MatmulRelu(8, 8, 8), fmt::format(R"([["AN", 2, 1, {}]])", annotation)));
}

TEST(Source, AllShortSchedules) {
  for (const dag::DagPtr& dag : {MatmulRelu(2, 3, 4), TwoElementwise(2, 3)}) {
    const State start(dag);
    for (const StepPtr& first : EnumerateSteps(start)) {
      State one = start;
      ASSERT_OK(one.Apply(first));
      CheckRoundTrip(one);
      for (const StepPtr& second : EnumerateSteps(one)) {
        State two = one;
        ASSERT_OK(two.Apply(second));
        CheckRoundTrip(two);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(Source, RandomSchedules) {
  const dag::DagPtr dags[] = {MatmulRelu(8, 12, 10),
                              Softmax(4, 9),
                              Conv2d({6, 3, 4, 3, 1, 1}, true),
                              ReduceRows(dag::Combiner::kSum, 3, 4, 5),
                              ReduceAll(dag::Combiner::kMin, 4, 6),
                              ArgMaxRows(4, 6),
                              TwoSums(3, 8),
                              MaxPool(6, 4)};
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    CheckRoundTrip(RandomSchedule(dags[seed % std::size(dags)], seed, 4 + seed % 21));
    if (testing::Test::HasFailure()) {
      FAIL() << "seed " << seed;
    }
  }
}

// Stages and loops whose names become the same identifiers: "A.shared" and A_shared, A_b.c and
// A.b_c.
TEST(Source, NamesAreOfOneThing) {
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::ParseDag(R"(input A: float32[8]
A_shared[i: 8, i_0: 4] = A[i] + float32(i_0)
A_shared_i[`0`: 8, `x.y`: 4, x_y: 2] = A_shared[`0`, `x.y`] * 2.0
s[i: 8] = A_shared_i[i, 0, 0] + A[i]
lambda[outer: 8, o: 2] = s[outer] + A[outer]
)"));
  const State state = Scheduled(
      dag,
      R"([["CHR", 0, "shared", [1, 3, 4]], ["CHR", 0, "shared", [1]], ["SP", 3, 0, 8, [2], 1], )"
      R"(["FU", 3, [0, 1]], ["SP", 3, 0, 8, [2], 1], ["SP", 4, 0, 8, [2], 1], ["FU", 4, [2, 3]], )"
      R"(["CHW", 5, "local"], ["SP", 6, 0, 8, [2, 2], 1], ["FU", 6, [0, 1, 2]]])");
  CheckRoundTrip(state);
  const std::string printed = PrintPrimitives(state);
  EXPECT_THAT(printed, HasSubstr("s_1_i = s[s_1].axes\n"));
  EXPECT_THAT(printed, HasSubstr("lambda_1_o, lambda_1_o_1 = s[lambda_1].axes\n"));
  EXPECT_THAT(printed, HasSubstr("A_shared_1 = s.cache_read(A, \"shared\", [A_shared, s_1, "
                                 "lambda_1])\n"));
}

TEST(Source, TakesWhatPeopleWrite) {
  const dag::DagPtr dag = MatmulRelu(8, 12, 16);
  const auto steps = [&](std::string_view text) {
    const auto state = ParsePrimitives(dag, text);
    return state.ok() ? PrintSteps(state->steps()) : std::string(Message(state.status()));
  };
  EXPECT_EQ(steps(""), "[]");
  EXPECT_EQ(steps("# nothing\n\n   # indented\r\n"), "[]");
  // Other names, brackets over lines, a comma at the end, and the loops of a stage at any place.
  EXPECT_EQ(steps("s[D].compute_root()\n"
                  "x, y, z, = s[C].axes\n"
                  "x_o, x_i = s[C].split(\n    x,  # rows\n    factor=4,\n)\n"
                  "a, b, c, d = s[C].axes\n"
                  "s[C].reorder(c, b)\n"
                  "y = s[C].fuse(x_o, c)\n"
                  "s[C].parallel(y)"),
            R"([["CR", 3], ["SP", 2, 0, 8, [4], 1], ["RE", 2, [0, 2, 1, 3]], ["FU", 2, [0, 1]], )"
            R"(["AN", 2, 0, 3]])");
  EXPECT_EQ(steps("i, j, k = s[C].axes\na, b = s[C].split(i, nparts=[2])\n"
                  "s[C].pragma(a, 'auto_unroll_max_step', 16)\n"),
            R"([["SP", 2, 0, 8, [2], 0], ["PR", 2, 0, "auto_unroll_max_step$16"]])");
}

TEST(Source, SaysWhatIsWrong) {
  const dag::DagPtr dag = MatmulRelu(8, 12, 16);
  const std::string axes = "C_i, C_j, C_k = s[C].axes\nD_i, D_j = s[D].axes\n";
  const std::pair<const char*, const char*> cases[] = {
      {"a, b = s[C].spilt(C_i, factor=4)",
       "line 3, column 13: 'spilt' is no primitive, did you mean split?; expected one of axes, "},
      {"a, b = s[E].split(C_i, factor=4)",
       "line 3, column 10: expected the name of a stage, found 'E'"},
      {"a, b = s[C].split(C_x, factor=4)",
       "line 3, column 19: expected a loop of C, which are C_i, C_j, C_k, found 'C_x', which is no "
       "name here"},
      {"a, b = s[C].split(D_i, factor=4)", "found 'D_i', a loop of D"},
      {"a, b = s[C].split(D, factor=4)", "found 'D', a stage"},
      {"a, b = s[C].split(C_i, factor=4)\ns[C].vectorize(C_i)",
       "line 4, column 16: expected a loop of C, which are a, b, C_j, C_k, found 'C_i', which was "
       "split"},
      {"a = s[C].fuse(C_i, C_j)\ns[C].vectorize(C_j)",
       "which are a, C_k, found 'C_j', which was split or fused"},
      {"a, b, c = s[C].split(C_i, factor=4)",
       "line 3, column 1: split gives 2 loops: expected so many names before '=', found 3"},
      {"s[C].split(C_i, factor=4)", "split gives 2 loops: expected so many names"},
      {"a = s[C].vectorize(C_i)", "vectorize gives 0 loops"},
      {"a, b = s[C].split(C_i)",
       "line 3, column 13: split: expected factor=, factors=, nparts=, follow="},
      {"a, b = s[C].split(C_i, factor=-4)", "expected factor from 0 to 1099511627776, found -4"},
      {"a, b = s[C].split(C_i, factor=x)", "expected factor=[NUMBER, ...], found 'x'"},
      {"a, b = s[C].split(C_i, factor=4, factor=2)", "line 3, column 34: split: this argument"},
      {"a, b = s[C].split(C_i, C_j, factor=2)", "line 3, column 24: split: this argument is one"},
      {"a, b = s[C].split(C_i, follow=C_j, parts=2)",
       "expected a loop that was split by factors or nparts, found 'C_j', which was not"},
      {"a, b = s[C].split(C_i, factor=4", "expected ',' or ')' after the argument, found the end"},
      {"a, b = s[C].split(C_i factor=4)", "expected ',' or ')' after the argument, found 'factor'"},
      {"a b = s[C].split(C_i, factor=4)",
       "line 3, column 1: expected s[STAGE].PRIMITIVE(...) or s.PRIMITIVE(...), found 'a'"},
      {"a, b = s[C].split(C_i, factor=4) s", "expected the end of the statement, found 's'"},
      {"a, b = s[C].split(C_i, factor=4x)", "line 3, column 31: a number ends in a letter"},
      {"a, b = s[C].split(C_i, factor=4); c", "line 3, column 33: unexpected ';'"},
      {"s[C].bind(C_i, \"blockIdx.w\")", "bind: expected one of \"vthread\", \"blockIdx.x\""},
      {"s[C].bind(C_i, \"blockIdx.x)", "this text does not end on its line"},
      {"s[C].pragma(C_i, \"unroll\", 4)", "pragma: expected one of \"auto_unroll_max_step\", "},
      {"s[C].reorder(C_i, C_i)", "reorder: expected each loop once"},
      {"s[C].compute_at(D_i)",
       "line 3, column 17: expected the name of a stage, found 'D_i', a "
       "loop of D"},
      {"s[C].compute_at(s[D], C_i)",
       "expected a loop of D, which are D_i, D_j, found 'C_i', a loop "
       "of C"},
      {"s[D].compute_at(s[C], C_i)",
       "line 3, column 6: compute at #0 (CA) of stage 3 (D): target "},
      {"x = s[C].cache_write(C, \"local\")", "line 3, column 10: expected s.cache_write(...)"},
      {"x = s.cache_write(C, \"local\")\ns[C].vectorize(C_i)",
       "found 'C_i', which a later step has replaced"},
      {"x = s.cache_read(A, \"shared\", [D])",
       "cache read #0 (CHR) of stage 0 (A): stage 3 does "
       "not read it"},
      {"x = s.cache_read(A, \"shared\", [3])", "expected the name of a stage, found 3"},
      {"a, b = s[C].axes", "line 3, column 13: C has 3 loops: expected so many names"},
      {"s[C].vectorize(\xc3\xa4)", "line 3, column 16: unexpected byte 0xc3"},
      {"s[C].vectorize(99999999999999999999)", "expected a 64-bit number"},
      {"s[C].layout(1, 0, 0)", "layout #0 (LA)"},
      {"s[C].buffering(9)", "expected the depth from 1 to 8, found 9"},
  };
  for (const auto& [text, message] : cases) {
    const auto read = ParsePrimitives(dag, axes + text);
    EXPECT_THAT(read.status(), StatusIs(StatusCode::kInvalidArgument, HasSubstr(message))) << text;
  }
}

// A reader that takes time with the number of stages for each statement would not end.
TEST(Source, LongChainsTakeTimeInProportion) {
  constexpr int kLength = 60'000;
  std::string text = "input X0: float32[8]\n", steps;
  for (int i = 1; i <= kLength; ++i) {
    text += fmt::format("X{}[i: 8] = X{}[i] + 1.0\n", i, i - 1);
    if (i < kLength)
      steps += fmt::format("{}[\"PR\", {}, 0, \"auto_unroll_max_step$1\"]", i > 1 ? ", " : "", i);
  }
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::ParseDag(text));
  const State state = Scheduled(dag, "[" + steps + "]");
  ASSERT_OK_AND_ASSIGN(const State read, ParsePrimitives(dag, PrintPrimitives(state)));
  EXPECT_EQ(PrintSteps(read.steps()), PrintSteps(state.steps()));
}

// Pieces of pieces, 100,000 deep, still have short names.
TEST(Source, NamesOfDeepSplitsAreShort) {
  std::string steps;
  for (int i = 0; i < 100'000; ++i) steps += R"(["SP", 2, 0, 8, [], 1], )";
  steps += R"(["CR", 2])";
  const State state = Scheduled(MatmulRelu(8, 8, 8), "[" + steps + "]");
  const std::string printed = PrintPrimitives(state);
  EXPECT_LT(printed.size(), 20'000'000u);
}

}  // namespace
}  // namespace kiln::schedule
