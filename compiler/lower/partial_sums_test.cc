#include "compiler/lower/partial_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/status_testing.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/loops.h"

namespace kiln::lower {
namespace {

// Two groups of four threads have sums of eight columns each, in rows of `columns`.
std::string Text(std::string_view hint, int columns, std::string_view kind,
                 std::string_view hints) {
  return fmt::format(
      "program(A: input float32[8, 8], C: output float32[8]) {{\n"
      "stage s {0} stage parts {3} stage C\n"
      "kernel k grid [1, 1, 1] block [8, 1, 1] {{ alloc part: shared float32[8, {1}] {{\n"
      "threadIdx.x t in 0..8 {{ alloc sum: local float32[8] {{\n"
      "for i in 0..8 {{ sum[i] = A[t, i] @ s }}\n"
      "{2} j in 0..8 {{ part[t, j] = sum[j] @ parts }}\n"
      "barrier\n"
      "C[t] = part[t, 0] + part[7 - t, 1] @ C\n}} }} }} }} }}",
      hint, columns, kind, hints);
}

ir::Program Parse(const std::string& text) {
  StatusOr<ir::Program> program = ir::ParseProgram(text);
  KILN_CHECK(program.ok(), "{}\n{}", Message(program.status()), text);
  return *std::move(program);
}

std::string AfterPasses(const std::string& text) {
  ir::Program program = Parse(text);
  VectorizeStores(program, 64);
  SwizzlePartialSums(program);
  EXPECT_OK(ir::Verify(program));
  return ir::ProgramText(program);
}

TEST(PartialSums, OfMatrixUnitsAreStoredByVectorsAndSwizzled) {
  EXPECT_EQ(AfterPasses(Text("matrix_unit 1", 32, "for", "")),
            ir::ProgramText(Parse(Text("matrix_unit 1", 32, "vectorize", "swizzle 1"))));
}

TEST(PartialSums, OfThreadsStayAsTheyAre) {
  const std::string text = Text("", 32, "for", "");
  EXPECT_EQ(AfterPasses(text), ir::ProgramText(Parse(text)));
}

// Rows of 36 elements are no whole lines, and lie in different banks without a swizzle.
TEST(PartialSums, OfOtherRowsAreNotSwizzled) {
  EXPECT_EQ(AfterPasses(Text("matrix_unit 1", 36, "for", "")),
            ir::ProgramText(Parse(Text("matrix_unit 1", 36, "vectorize", ""))));
}

}  // namespace
}  // namespace kiln::lower
