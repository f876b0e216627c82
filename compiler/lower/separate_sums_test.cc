// Tests that each sum of matrix units gets loops of its own, on lowered states: the loops, and that
// the program computes what it did.
#include "compiler/lower/separate_sums.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "base/status_testing.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/state_testing.h"

namespace kiln::lower {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kTwoSums = R"(
input x: float16[16, 32]
input v: float16[32, 8]
input w: float16[32, 8]
g[i: 16, j: 8] = sum(k: 32) float32(x[i, k]) * float32(v[k, j])
u[i: 16, j: 8] = sum(k: 32) float32(x[i, k]) * float32(w[k, j])
y[i: 16, j: 8] = max(g[i, j], 0.0) + u[i, j]
)";

// A warp computes both sums; x, v and w are read from global memory.
std::string StepsOf(bool are_of_matrix_units) {
  return fmt::format(
      R"([["MV", 3, 2], ["CHW", 3, "local", [4]], ["CI", 4], ["CI", 5],
      ["SP", 3, 0, 16, [2, 8, 1, 1], 1], ["SP", 3, 5, 8, [1, 4, 1, 2], 1],
      ["SP", 3, 10, 32, [1, 16], 1], ["RE", 3, [0, 5, 1, 6, 2, 7, 10, 11, 3, 8, 12, 4, 9]],
      ["FSP", 6, 0, 4, 3], ["FSP", 6, 4, 5, 3], ["RE", 6, [0, 4, 1, 5, 2, 6, 3, 7]],
      ["CA", 3, 6, 5], {}
      ["FU", 6, [0, 1]], ["AN", 6, 0, 5], ["FU", 6, [1, 2]], ["AN", 6, 1, 4],
      ["FU", 6, [2, 3]], ["AN", 6, 2, 6]])",
      are_of_matrix_units ? R"(["PR", 3, 0, "matrix_unit$1"],)" : "");
}

ir::Program Lowered(bool are_of_matrix_units) {
  StatusOr<ir::Program> program =
      Lower(StateFrom(kTwoSums, StepsOf(are_of_matrix_units)), {.gpu = true});
  KILN_CHECK(program.ok(), "{}", Message(program.status()));
  return *std::move(program);
}

int Count(std::string_view text, std::string_view word) {
  int count = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// The loop over the 16 terms of a step.
constexpr std::string_view kTerms = "in 0..16 {";

TEST(SeparateSums, EachSumOfMatrixUnitsHasLoopsOfItsOwn) {
  const std::string text = ir::ProgramText(Lowered(true));
  EXPECT_EQ(Count(text, kTerms), 2) << text;
  const size_t first = text.find("+ float32(x"), second = text.find("+ float32(x", first + 1);
  ASSERT_NE(second, text.npos) << text;
  EXPECT_EQ(Count(std::string_view(text).substr(first, second - first), kTerms), 1) << text;
}

TEST(SeparateSums, SumsOfThreadsStayTogether) {
  EXPECT_EQ(Count(ir::ProgramText(Lowered(false)), kTerms), 1);
}

TEST(SeparateSums, OneSumStaysAsItIs) {
  ir::Program program = Lowered(true);
  const std::string before = ir::ProgramText(program);
  std::vector<LoopOwner> owners(program.vars.size(), LoopOwner{.stage = 0, .loop = 0});
  SeparateSums(program, owners);
  EXPECT_EQ(ir::ProgramText(program), before);
  EXPECT_EQ(owners.size(), program.vars.size());
}

}  // namespace
}  // namespace kiln::lower
