// Loads before sums, on programs written by hand: the result of the pass, and that it computes the
// same.
#include "compiler/lower/early_loads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/program_text.h"

namespace kiln::lower {
namespace {

constexpr int64_t kThreads = 4, kTerms = 5, kColumns = 24;

// Makes a program with `rest` behind the sums of `columns` columns of each thread.
ir::Program Parse(int64_t columns, std::string_view rest, int unit = 2) {
  const std::string text = fmt::format(
      "program(A: input float32[{0}, {1}], B: input float32[{1}, {2}], bias: input float16[8], "
      "row: input float32[{0}, {2}], C: output float32[{0}, {3}]) {{\n"
      "stage s matrix_unit {4} stage C\n"
      "kernel k grid [1, 1, 1] block [{0}, 1, 1] {{ threadIdx.x t in 0..{0} {{\n"
      "alloc sum: local float32[{3}] {{\n{5}\n}} }} }} }}",
      kThreads, kTerms, kColumns, columns, unit, rest);
  StatusOr<ir::Program> program = ir::ParseProgram(text);
  KILN_CHECK(program.ok(), "{}\n{}", Message(program.status()), text);
  return *std::move(program);
}

std::string Products(int64_t columns) {
  return fmt::format(
      "for i in 0..{0} {{ sum[i] = 0.0 @ s }}\n"
      "for k in 0..{1} {{ for j in 0..{0} {{ sum[j] = sum[j] + A[t, k]*B[k, j] @ s }} }}\n",
      columns, kTerms);
}

ir::NDArray Result(const ir::Program& program) {
  std::vector<ir::NDArray> arrays;
  std::vector<ir::NDArray*> arguments;
  for (int i = 0; i < program.num_args(); ++i) {
    const ir::Buffer& buffer = program.buffers[static_cast<size_t>(i)];
    arrays.emplace_back(buffer.type, buffer.shape);
    arrays.back().FillRandom(static_cast<uint64_t>(i), ir::RandomKind::kSmallIntegers);
  }
  arrays.back().Poison();
  for (ir::NDArray& array : arrays) arguments.push_back(&array);
  EXPECT_OK(ir::Interpret(program, arguments));
  return arrays.back();
}

// `loads` and `early_results` are the expected statements before and behind the products.
void ExpectEarly(int64_t columns, std::string_view results, std::string_view loads,
                 std::string_view early_results, int unit = 2) {
  ir::Program program = Parse(columns, fmt::format("{}{}", Products(columns), results), unit);
  const ir::NDArray want = Result(program);
  LoadBeforeSums(program);
  EXPECT_OK(ir::Verify(program));
  const std::string expected = fmt::format("{}{}{}", loads, Products(columns), early_results);
  EXPECT_EQ(ir::ProgramText(program), ir::ProgramText(Parse(columns, expected, unit)));
  EXPECT_EQ(Result(program), want);
}

void ExpectLeftAlone(int64_t columns, std::string_view results, int unit = 2) {
  ExpectEarly(columns, results, "", results, unit);
}

TEST(LoadBeforeSums, ABiasAndARow) {
  ExpectEarly(6, "for w in 0..6 { C[t, w] = sum[w] + float32(bias[w % 3]) + row[t, w] @ C }",
              "alloc row_early: local float32[6] alloc bias_early: local float16[6]\n"
              "for w_1 in 0..6 { bias_early[w_1] = bias[w_1 % 3] @ C }\n"
              "for w_2 in 0..6 { row_early[w_2] = row[t, w_2] @ C }\n",
              "for w in 0..6 { C[t, w] = sum[w] + float32(bias_early[w]) + row_early[w] @ C }");
}

TEST(LoadBeforeSums, OfTheLoopsThatNumberElements) {
  ExpectEarly(
      6, "for v in 0..3 { for w in 0..2 { C[t, v*2 + w] = sum[v*2 + w] + float32(bias[v]) @ C } }",
      "alloc bias_early: local float16[3]\nfor v_1 in 0..3 { bias_early[v_1] = bias[v_1] @ C }\n",
      "for v in 0..3 { for w in 0..2 { C[t, v*2 + w] = sum[v*2 + w] + float32(bias_early[v]) @ C } "
      "}");
  ExpectEarly(6, "for w in 0..6 { C[t, w] = sum[w] + row[t, 5] @ C }",
              "alloc row_early: local float32[1]\nrow_early[0] = row[t, 5] @ C\n",
              "for w in 0..6 { C[t, w] = sum[w] + row_early[0] @ C }");
}

TEST(LoadBeforeSums, OnceWhatIsUsedTwice) {
  ExpectEarly(6, "for w in 0..6 { C[t, w] = (sum[w] + row[t, w])*row[t, w] @ C }",
              "alloc row_early: local float32[6]\n"
              "for w_1 in 0..6 { row_early[w_1] = row[t, w_1] @ C }\n",
              "for w in 0..6 { C[t, w] = (sum[w] + row_early[w])*row_early[w] @ C }");
}

TEST(LoadBeforeSums, NeighboursAsAVector) {
  ExpectEarly(
      6, "for w in 0..2 { for v in 0..3 { C[t, v*2 + w] = sum[v*2 + w] + row[t, v*2 + w] @ C } }",
      "alloc row_early: local float32[3, 2]\n"
      "for v_1 in 0..3 { vectorize w_1 in 0..2 { row_early[v_1, w_1] = row[t, v_1*2 + w_1] @ C } "
      "}\n",
      "for w in 0..2 { for v in 0..3 { C[t, v*2 + w] = sum[v*2 + w] + row_early[v, w] @ C } }");
}

// The bias of 24 columns has 8 elements; the row has 24.
TEST(LoadBeforeSums, AsLongAsThereAreRegisters) {
  ExpectEarly(24, "for w in 0..24 { C[t, w] = sum[w] + float32(bias[w % 8]) + row[t, w] @ C }",
              "alloc bias_early: local float16[24]\n"
              "for w_1 in 0..24 { bias_early[w_1] = bias[w_1 % 8] @ C }\n",
              "for w in 0..24 { C[t, w] = sum[w] + float32(bias_early[w]) + row[t, w] @ C }");
}

TEST(LoadBeforeSums, NothingUnderAConditionOrAtAPlaceThatIsLoaded) {
  ExpectLeftAlone(6, "for w in 0..6 { C[t, w] = sum[w] + if(w < 2, row[t, w], 0.0) @ C }");
  ExpectLeftAlone(6,
                  "for w in 0..6 { if w < 2 { C[t, w] = sum[w] + row[t, w] @ C } }\n"
                  "for w2 in 0..6 { if w2 >= 2 { C[t, w2] = sum[w2] @ C } }");
}

// Values in shared memory may be factors of other products.
TEST(LoadBeforeSums, NothingThatGoesToSharedMemory) {
  ExpectLeftAlone(6,
                  "alloc next: shared float32[4, 6]\n"
                  "for v in 0..6 { next[t, v] = row[t, v] @ C }\n"
                  "for w in 0..6 { C[t, w] = sum[w] + next[t, w] @ C }");
}

TEST(LoadBeforeSums, OfUnitsOfFourWarpsAlone) {
  ExpectLeftAlone(6, "for w in 0..6 { C[t, w] = sum[w] + row[t, w] @ C }", /*unit=*/1);
}

}  // namespace
}  // namespace kiln::lower
