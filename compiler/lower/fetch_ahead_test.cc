#include "compiler/lower/fetch_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/evaluate.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/state_testing.h"

namespace kiln::lower {
namespace {

using testing::HasSubstr;
using testing::Not;

// A tiled product with two reduction axes: C.local in registers, A and B in shared memory, fetched
// by 4 threads for each of the outer tiles of k and l.
constexpr std::string_view kDag = R"(
    input A: float32[8, 6, 4]
    input B: float32[6, 4, 8]
    C[i: 8, j: 8] = sum(k: 6, l: 4) A[i, k, l] * B[k, l, j])";

std::string Steps(std::string_view k_tile, std::string_view l_tile, std::string_view more) {
  return fmt::format(
      R"([["CHW", 2, "local"], ["SP", 2, 3, 4, [{}], 1], ["SP", 2, 2, 6, [{}], 1],)"
      R"( ["RE", 2, [2, 4, 3, 5, 0, 1]], ["SP", 3, 1, 8, [4], 1], ["SP", 3, 0, 8, [4], 1],)"
      R"( ["RE", 3, [0, 2, 1, 3]], ["FU", 3, [0, 1]], ["CA", 2, 3, 1],)"
      R"( ["CHR", 1, "shared", [2]], ["CA", 2, 3, 1], ["CHR", 0, "shared", [3]], ["CA", 1, 4, 1],)"
      R"( ["AN", 5, 0, 5], ["AN", 5, 1, 6], ["FU", 3, [0, 1, 2]], ["SP", 3, 0, 0, [4], 1],)"
      R"( ["AN", 3, 1, 6], ["FU", 1, [0, 1, 2]], ["SP", 1, 0, 0, [4], 1], ["AN", 1, 1, 6]{}])",
      l_tile, k_tile, more);
}

size_t Count(const std::string& text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

void ExpectComputes(const schedule::State& state, const ir::Program& program) {
  const dag::Dag& dag = *state.initial_dag();
  std::vector<ir::NDArray> inputs = dag::RandomInputs(dag, 1, ir::RandomKind::kSmallIntegers);
  ASSERT_OK_AND_ASSIGN(const std::vector<ir::NDArray> want, dag::Evaluate(dag, inputs));
  ir::NDArray output(want[0].type(), want[0].shape());
  output.Poison();
  ASSERT_OK(ir::Interpret(program, {{&inputs[0], &inputs[1], &output}}));
  EXPECT_OK(ir::Compare(output, want[0], ir::DefaultTolerance(want[0].type()), "C"));
}

std::string Lowered(std::string_view k_tile, std::string_view l_tile, std::string_view more) {
  const schedule::State state = StateFrom(kDag, Steps(k_tile, l_tile, more));
  const StatusOr<ir::Program> program = Lower(state, {.gpu = true});
  if (!program.ok()) return "REFUSED: " + std::string(Message(program.status()));
  EXPECT_OK(ir::Verify(*program));
  ExpectComputes(state, *program);
  return ir::ProgramText(*program);
}

TEST(FetchAhead, ReadsTheNextTilesDuringTheWork) {
  const std::string single = Lowered("3", "2", "");
  EXPECT_THAT(single, HasSubstr("A_shared: shared float32[4, 3, 2]"));
  EXPECT_EQ(Count(single, "barrier"), 2u);
  EXPECT_THAT(single, Not(HasSubstr("ahead")));
  EXPECT_EQ(Lowered("3", "2", R"(, ["BF", 4, 1])"), single);

  const std::string twice = Lowered("3", "2", R"(, ["BF", 4, 2])");
  EXPECT_THAT(twice, HasSubstr("A_shared: shared float32[2, 4, 3, 2]"));
  EXPECT_THAT(twice, HasSubstr("B_shared: shared float32[2, 3, 2, 4]"));
  EXPECT_THAT(twice, HasSubstr("A_shared_ahead: local float32[6]"));
  EXPECT_EQ(Count(twice, "barrier"), 2u) << "after the first tiles, and one per iteration";
  EXPECT_THAT(twice, HasSubstr("in 0..4")) << "the outer tiles of k and l are one loop";
}

TEST(FetchAhead, OneTileHasNothingAhead) {
  const std::string whole = Lowered("6", "4", "");
  EXPECT_EQ(Lowered("6", "4", R"(, ["BF", 4, 2])"), whole);
}

// The tiles do not divide the axes. Guards move with the iteration to which they belong.
TEST(FetchAhead, GuardsAreThoseOfTheTileThatIsFetched) {
  for (const char* k : {"1", "2", "4", "5"}) {
    for (const char* l : {"1", "3", "4"}) {
      SCOPED_TRACE(fmt::format("{} {}", k, l));
      EXPECT_THAT(Lowered(k, l, R"(, ["BF", 4, 2])"), HasSubstr("ahead"));
    }
  }
}

// A ring of `depth` buffers. The interpreter carries copies out as late as the program allows.
TEST(FetchAhead, CopiesAreInFlightDuringTheWork) {
  const std::string twice = Lowered("3", "2", R"(, ["BF", 4, 2, 1])");
  EXPECT_THAT(twice, HasSubstr("A_shared: shared float32[2, 4, 3, 2]"));
  EXPECT_THAT(twice, Not(HasSubstr("ahead")));
  EXPECT_EQ(Count(twice, "barrier(0)"), 1u);
  EXPECT_EQ(Count(twice, "async "), 4u) << "of A and B, of the first iteration and the next";
  const std::string thrice = Lowered("3", "2", R"(, ["BF", 4, 3, 1])");
  EXPECT_THAT(thrice, HasSubstr("A_shared: shared float32[3, 4, 3, 2]"));
  EXPECT_THAT(thrice, HasSubstr("B_shared: shared float32[3, 3, 2, 4]"));
  EXPECT_EQ(Count(thrice, "barrier"), 1u);
  EXPECT_EQ(Count(thrice, "barrier(1)"), 1u);
  EXPECT_EQ(Count(thrice, "commit"), 2u);
  ASSERT_OK_AND_ASSIGN(const ir::Program parsed, ir::ParseProgram(thrice));
  EXPECT_EQ(ir::ProgramText(parsed), thrice);
}

TEST(FetchAhead, NoMoreBuffersThanIterations) {
  const std::string all = Lowered("3", "2", R"(, ["BF", 4, 4, 1])");
  EXPECT_THAT(all, HasSubstr("A_shared: shared float32[4, 4, 3, 2]"));
  EXPECT_EQ(Lowered("3", "2", R"(, ["BF", 4, 7, 1])"), all);
  EXPECT_EQ(Lowered("6", "4", R"(, ["BF", 4, 3, 1])"), Lowered("6", "4", ""));
}

TEST(FetchAhead, CopiesWithGuards) {
  for (const char* k : {"1", "2", "4", "5"}) {
    for (const char* l : {"1", "3", "4"}) {
      for (const char* depth : {"2", "3", "5"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", k, l, depth));
        EXPECT_THAT(Lowered(k, l, fmt::format(R"(, ["BF", 4, {}, 1])", depth)), HasSubstr("async"));
      }
    }
  }
}

// Zeros of a padding are copied too. A value that is computed goes through registers.
TEST(FetchAhead, OnlyCopiesAreAsynchronous) {
  const auto lowered = [](std::string_view body) {
    const std::string dag = fmt::format(R"(
      input A: float32[8, 6, 4]
      input B: float32[6, 4, 8]
      E[i: 8, k: 6, l: 4] = {}
      C[i: 8, j: 8] = sum(k: 6, l: 4) E[i, k, l] * B[k, l, j])",
                                        body);
    const std::string steps =
        R"([["CHW", 3, "local"], ["SP", 3, 3, 4, [2], 1], ["SP", 3, 2, 6, [2], 1],)"
        R"( ["RE", 3, [2, 4, 3, 5, 0, 1]], ["SP", 4, 1, 8, [4], 1], ["SP", 4, 0, 8, [4], 1],)"
        R"( ["RE", 4, [0, 2, 1, 3]], ["FU", 4, [0, 1]], ["CA", 3, 4, 1],)"
        R"( ["CHR", 2, "shared", [3]], ["CA", 3, 4, 1], ["CHR", 1, "shared", [4]],)"
        R"( ["CA", 2, 5, 1], ["CI", 1], ["AN", 6, 0, 5], ["AN", 6, 1, 6], ["FU", 4, [0, 1, 2]],)"
        R"( ["SP", 4, 0, 0, [4], 1], ["AN", 4, 1, 6], ["FU", 2, [0, 1, 2]],)"
        R"( ["SP", 2, 0, 0, [4], 1], ["AN", 2, 1, 6], ["BF", 5, 3, 1]])";
    const schedule::State state = StateFrom(dag, steps);
    const StatusOr<ir::Program> program = Lower(state, {.gpu = true});
    KILN_CHECK(program.ok(), "{}", Message(program.status()));
    EXPECT_OK(ir::Verify(*program));
    ExpectComputes(state, *program);
    return ir::ProgramText(*program);
  };
  const std::string padded = lowered("if(k >= 1 && l < 3, A[i, k - 1, l + 1], 0.0)");
  EXPECT_EQ(Count(padded, "async "), 4u) << padded;
  EXPECT_THAT(padded, Not(HasSubstr("ahead")));
  for (const char* body : {"A[i, k, l] * 2.0", "if(k >= 1, A[i, k - 1, l], 1.0)",
                           "if(k >= 1, A[i, k - 1, l], -0.0)"}) {
    const std::string computed = lowered(body);
    EXPECT_EQ(Count(computed, "async "), 2u) << computed;
    EXPECT_THAT(computed, HasSubstr("E_shared_ahead: local float32[4]"));
  }
}

// Layouts and paddings of the tiles change the places of elements, not the results.
TEST(FetchAhead, TilesMayHaveAnyLayout) {
  // The steps before the loops of the fetches are fused: stage 3 is B.shared, 1 is A.shared.
  const std::string plain = Steps("3", "2", "");
  const size_t fuse = plain.find(R"(["FU", 3, [0, 1, 2]])");
  ASSERT_NE(fuse, plain.npos);
  const auto lowered = [&](std::string_view layouts, std::string_view more) {
    std::string steps = Steps("3", "2", more);
    steps.insert(fuse, layouts);
    const schedule::State state = StateFrom(kDag, steps);
    const StatusOr<ir::Program> program = Lower(state, {.gpu = true});
    KILN_CHECK(program.ok(), "{}", Message(program.status()));
    ExpectComputes(state, *program);
    return ir::ProgramText(*program);
  };
  for (const char* more : {"", R"(, ["BF", 4, 2])", R"(, ["BF", 4, 3, 1])"}) {
    SCOPED_TRACE(more);
    const std::string half = *more == 0 ? "" : Count(more, "3, 1") > 0 ? "3, " : "2, ";
    EXPECT_THAT(lowered(R"(["LA", 1, [1, 2, 0]], )", more),
                HasSubstr("A_shared: shared float32[" + half + "3, 2, 4]"));
    EXPECT_THAT(lowered(R"(["LA", 1, [2, 0, 1]], ["SA", 1, 0, 8, 4], )", more),
                HasSubstr("A_shared: shared float32[" + half + "2, 4, 4]"));
    EXPECT_THAT(
        lowered(R"(["SA", 3, 0, 5, 1], ["LA", 3, [0, 2, 1]], ["LA", 1, [2, 1, 0]], )", more),
        HasSubstr("B_shared: shared float32[" + half + "3, 8, 2]"));
  }
}

// If tiles are fetched in vectors, a transposed tile goes through registers and the other one does
// not.
TEST(FetchAhead, TransposedVectorsGoThroughRegisters) {
  std::string steps = Steps("3", "2", R"(, ["BF", 4, 3, 1])");
  const auto insert = [&](std::string_view before, std::string_view text) {
    const size_t at = steps.find(before);
    ASSERT_NE(at, steps.npos);
    steps.insert(at, text);
  };
  insert(R"(["FU", 3, [0, 1, 2]])", R"(["LA", 1, [1, 2, 0]], )");
  insert(R"(["SP", 3, 0, 0, [4], 1])", R"(["SP", 3, 0, 0, [2], 1], ["AN", 3, 1, 2], )");
  insert(R"(["SP", 1, 0, 0, [4], 1])", R"(["SP", 1, 0, 0, [2], 1], ["AN", 1, 1, 2], )");
  const schedule::State state = StateFrom(kDag, steps);
  ASSERT_OK_AND_ASSIGN(const ir::Program program, Lower(state, {.gpu = true}));
  ExpectComputes(state, program);
  const std::string text = ir::ProgramText(program);
  EXPECT_THAT(text, HasSubstr("A_shared_ahead: local float32[3, 2]"));
  EXPECT_EQ(Count(text, "async B_shared"), 2u) << text;
  EXPECT_EQ(Count(text, "async A_shared"), 0u);
}

// A whole intermediate tensor has its own layout too, on a CPU as well.
TEST(Layout, OfAnIntermediateTensor) {
  constexpr std::string_view kTwo = R"(
    input A: float32[6, 5]
    input B: float32[5, 7]
    C[i: 6, j: 7] = sum(k: 5) A[i, k] * B[k, j]
    D[i: 6, j: 7] = max(C[i, j], 0.0))";
  for (const bool gpu : {false, true}) {
    const schedule::State state = StateFrom(kTwo, R"([["LA", 2, [1, 0]], ["SA", 2, 1, 8, 3]])");
    ASSERT_OK_AND_ASSIGN(const ir::Program program, Lower(state, {.gpu = gpu}));
    EXPECT_THAT(ir::ProgramText(program), HasSubstr("C: workspace float32[7, 11]"));
    ExpectComputes(state, program);
  }
}

}  // namespace
}  // namespace kiln::lower
