// Steps that rewrite operators (CHR, CHW, RF) change how a DAG is computed, and never its values.
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/evaluate.h"
#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/random_schedule_testing.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {
namespace {

using dag::Combiner;

void ExpectSameResult(const State& state, const std::string& context) {
  SCOPED_TRACE(context);
  const auto inputs = dag::RandomInputs(*state.initial_dag(), 7, ir::RandomKind::kSmallIntegers);
  ASSERT_OK_AND_ASSIGN(const auto before, dag::Evaluate(*state.initial_dag(), inputs));
  ASSERT_OK_AND_ASSIGN(const auto after, dag::Evaluate(*state.dag(), inputs));
  EXPECT_EQ(after, before);
}

void ExpectSameResult(const dag::DagPtr& dag, const std::string& text) {
  ASSERT_OK_AND_ASSIGN(auto steps, ParseSteps(text));
  ASSERT_OK_AND_ASSIGN(const State state, Replay(dag, steps));
  ExpectSameResult(state, text);
}

// A search applies the same steps to thousands of states.
TEST(NewStages, TheSameStepsMakeADagOnce) {
  const dag::DagPtr dag = ReduceRows(Combiner::kSum, 3, 4, 6);
  const auto made = [&](std::string_view text) {
    const auto steps = ParseSteps(text);
    const StatusOr<State> state = Replay(dag, *steps);
    EXPECT_OK(state.status());
    return state->dag();
  };
  constexpr std::string_view kWrite = R"([["CHW", 1, "local"]])";
  constexpr std::string_view kRead = R"([["CHR", 0, "shared", [1]]])";
  constexpr std::string_view kFactor = R"([["SP", 1, 2, 6, [2], 1], ["RF", 1, 2, 1]])";
  for (const std::string_view text : {kWrite, kRead, kFactor}) EXPECT_EQ(made(text), made(text));
  EXPECT_NE(made(kWrite), made(R"([["CHW", 1, "shared"]])"));
  EXPECT_NE(made(kRead), made(R"([["CHR", 0, "local", [1]]])"));
  EXPECT_NE(made(kFactor), made(R"([["SP", 1, 2, 6, [3], 1], ["RF", 1, 2, 1]])"));
}

class CombinerTest : public testing::TestWithParam<Combiner> {};

// Exact and inexact splits, every piece, every position of the new axis.
TEST_P(CombinerTest, RfactorOfOneAxis) {
  for (int extent : {12, 13, 1}) {
    for (const char* lengths : {"[4]", "[3, 2]", "[5]", "[16]"}) {
      for (int direction : {0, 1}) {
        const int pieces = std::string_view(lengths) == "[3, 2]" ? 3 : 2;
        for (int piece = 0; piece < pieces; ++piece) {
          for (int position : {0, 1}) {
            ExpectSameResult(ReduceRows(GetParam(), 3, extent, 2),
                             fmt::format(R"([["SP", 1, 1, 0, {}, {}], ["RF", 1, {}, {}]])", lengths,
                                         direction, 1 + piece, position));
          }
        }
      }
    }
  }
}

TEST_P(CombinerTest, RfactorOfFusedAxes) {
  for (int k : {4, 5, 7}) {
    for (int piece : {1, 2}) {
      ExpectSameResult(
          ReduceRows(GetParam(), 3, 3, k),
          fmt::format(R"([["FU", 1, [1, 2]], ["SP", 1, 1, 0, [4], 1], ["RF", 1, {}, 1]])", piece));
    }
  }
}

TEST_P(CombinerTest, RfactorOfAWholeLoop) {
  ExpectSameResult(ReduceRows(GetParam(), 3, 4, 5), R"([["RF", 1, 1, 0]])");
  ExpectSameResult(ReduceRows(GetParam(), 3, 4, 5), R"([["FU", 1, [1, 2]], ["RF", 1, 1, 1]])");
  ExpectSameResult(ReduceAll(GetParam(), 4, 5), R"([["RF", 1, 1, 0], ["RF", 2, 0, 0]])");
}

TEST_P(CombinerTest, RfactorAfterReorder) {
  ExpectSameResult(ReduceRows(GetParam(), 3, 4, 5),
                   R"([["SP", 1, 2, 5, [2], 1], ["RE", 1, [3, 0, 2, 1]], ["RF", 1, 0, 0]])");
}

TEST_P(CombinerTest, RfactorTwice) {
  ExpectSameResult(
      ReduceRows(GetParam(), 3, 4, 7),
      R"([["SP", 1, 2, 7, [3], 1], ["RF", 1, 3, 1], ["SP", 1, 3, 3, [2], 1], ["RF", 1, 4, 0]])");
}

INSTANTIATE_TEST_SUITE_P(All, CombinerTest,
                         testing::Values(Combiner::kSum, Combiner::kProd, Combiner::kMax,
                                         Combiner::kMin),
                         [](const auto& info) {
                           return std::string(dag::CombinerName(info.param));
                         });

TEST(Rfactor, OfTwoSums) {
  for (const char* steps : {R"([["RF", 1, 1, 0]])", R"([["SP", 1, 1, 7, [3], 1], ["RF", 1, 1, 1]])",
                            R"([["SP", 1, 1, 7, [3], 1], ["RF", 1, 2, 0]])"}) {
    ExpectSameResult(TwoSums(3, 7), steps);
  }
}

// The smaller index of equal values wins, whichever part it is in.
TEST(Rfactor, OfArgmax) {
  for (const char* steps : {R"([["RF", 1, 1, 0]])", R"([["SP", 1, 1, 7, [3], 1], ["RF", 1, 1, 1]])",
                            R"([["SP", 1, 1, 7, [3], 1], ["RF", 1, 2, 0]])"}) {
    ExpectSameResult(ArgMaxRows(3, 7), steps);
  }
}

TEST(Rfactor, OfAConvolution) {
  ExpectSameResult(Conv2d({6, 3, 4, 3, 1, 1}, true),
                   R"([["FU", 3, [4, 5, 6]], ["SP", 3, 4, 27, [8], 1], ["RF", 3, 5, 4]])");
}

TEST(Caches, KeepTheResult) {
  const dag::DagPtr conv = Conv2d({6, 3, 4, 3, 2, 1}, true);
  ExpectSameResult(
      conv, R"([["CHW", 3, "local"], ["CHR", 2, "shared", [3]], ["CHR", 1, "shared", [4]]])");
  ExpectSameResult(MatmulRelu(3, 4, 5),
                   R"([["CHR", 2, "local", [3]], ["CHW", 4, "local"], ["CHR", 0, "local", [2]]])");
}

TEST(Caches, WithOtherOrdersOfDimensionsKeepTheResult) {
  for (const char* steps :
       {R"([["CHR", 1, "transposed", [2], [1, 0]]])", R"([["CHR", 1, "transposed", [2], [0, 1]]])",
        R"([["CHR", 0, "local", [2], [1, 0]], ["CHR", 2, "local", [3], [1, 0]]])",
        R"([["CHR", 2, "local", [3], [1, 0]], ["CHW", 4, "local"]])",
        R"([["CHR", 1, "a", [2], [1, 0]], ["CHR", 2, "shared", [3]]])"}) {
    ExpectSameResult(MatmulRelu(3, 4, 5), steps);
  }
  const dag::DagPtr conv = Conv2d({6, 3, 4, 3, 2, 1}, true);
  ExpectSameResult(conv,
                   R"([["CHR", 2, "t", [3], [1, 3, 2, 0]], ["CHR", 1, "u", [4], [3, 0, 1, 2]]])");
}

TEST(Caches, OfSeveralOutputsKeepAllOfThem) {
  for (const dag::DagPtr& dag : {TwoSums(3, 7), ArgMaxRows(3, 7)}) {
    ExpectSameResult(dag, R"([["CHW", 1, "local"]])");
    ExpectSameResult(
        dag, R"([["SP", 1, 1, 7, [3], 0], ["RF", 1, 1, 0], ["CHW", 1, "local"], ["CHW", 3, "x"]])");
  }
}

// The reader is the same operator except for the order of its reads.
TEST(Caches, ReadersReadTheOtherOrder) {
  ASSERT_OK_AND_ASSIGN(const auto steps, ParseSteps(R"([["CHR", 1, "transposed", [2], [1, 0]]])"));
  ASSERT_OK_AND_ASSIGN(const State state, Replay(MatmulRelu(3, 4, 5), steps));
  const dag::Dag& dag = *state.dag();
  const dag::Operator& copy = dag.op(2);
  EXPECT_EQ(copy.name(), "B.transposed");
  EXPECT_EQ(copy.shape(), (std::vector<int64_t>{dag.op(1).shape()[1], dag.op(1).shape()[0]}));
  EXPECT_EQ(dag.op(3).name(), state.initial_dag()->op(2).name());
  EXPECT_EQ(state.stage(3).op.get(), &dag.op(3));
  EXPECT_EQ(dag.node(3).inputs, (std::vector<dag::Tensor>{{0, 0}, {2, 0}}));
}

TEST(NewStages, RandomSchedulesKeepTheResult) {
  const dag::DagPtr dags[] = {MatmulRelu(3, 5, 6), Conv2d({4, 2, 3, 3, 1, 1}, true),
                              ReduceRows(Combiner::kMax, 3, 4, 5), ReduceAll(Combiner::kSum, 4, 5)};
  int changed = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const State state = RandomSchedule(dags[seed % 4], seed, 14);
    if (state.dag() == state.initial_dag()) continue;
    ++changed;
    ExpectSameResult(state, fmt::format("seed {} {}", seed, PrintSteps(state.steps())));
  }
  EXPECT_GT(changed, 100);
}

}  // namespace
}  // namespace kiln::schedule
