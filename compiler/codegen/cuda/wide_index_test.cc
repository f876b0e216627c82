// Index arithmetic of generated CUDA: in 32 bits where the extents allow it, in 64 where they do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"

namespace kiln::codegen {
namespace {

using testing::HasSubstr;
using testing::Not;

StatusOr<ir::Program> Lowered(const std::string& text) {
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(text));
  return lower::Lower(schedule::State(dag), {.gpu = true});
}

std::string CudaOf(const std::string& text) {
  const auto program = Lowered(text);
  if (!program.ok()) return std::string(Message(program.status()));
  const auto source = GenerateCuda(*program);
  return source.ok() ? source->text : std::string(Message(source.status()));
}

std::string ElementWise(int64_t rows) {
  return fmt::format("input x: float16[{0}, 32815]\ny[i: {0}, j: 32815] = x[i, j] * 0.5 + 1.0\n",
                     rows);
}
std::string Transposition(int64_t rows) {
  return fmt::format("input x: int8[{0}, 32815]\ny[j: 32815, i: {0}] = x[i, j]\n", rows);
}
std::string Sums(int64_t rows) {
  return fmt::format("input x: int8[{0}, 32815]\ny[i: {0}] = sum(j: 32815) int32(x[i, j])\n", rows);
}
std::string Gather(int64_t rows, std::string_view type) {
  return fmt::format(
      "input t: int8[{}, 16]\ninput ids: {}[1024]\ny[i: 1024, j: 16] = t[ids[i], j]\n", rows, type);
}

// 65,280 rows of 32,815 elements, whole blocks of threads, are below 2^31 elements; from 65,442 rows
// on they are above.
TEST(WideIndex, ByTheNumberOfElements) {
  for (const auto& make : {ElementWise, Transposition, Sums}) {
    EXPECT_THAT(CudaOf(make(65'280)), Not(HasSubstr("long long"))) << CudaOf(make(65'280));
    EXPECT_THAT(CudaOf(make(65'602)), HasSubstr("long long")) << CudaOf(make(65'602));
  }
}

TEST(WideIndex, OfAnIndexThatATensorHolds) {
  for (const std::string_view type : {"int32", "int64"}) {
    const std::string narrow = CudaOf(Gather(134'217'728 - 1, type));
    const std::string wide = CudaOf(Gather(134'545'408, type));
    EXPECT_THAT(wide, HasSubstr("long long")) << wide;
    // Values of 64 bits are read as such.
    if (type == "int64") continue;
    EXPECT_THAT(narrow, Not(HasSubstr("long long"))) << narrow;
  }
}

// Small tensors, large numbers on the way to their indices: what 32 bits would make of them is seen.
TEST(WideIndex, ComputesWhatTheInterpreterDoes) {
  for (const char* text : {
           "input x: int32[61]\ny[i: 64] = x[(i * 100000007) % 61]\n",
           "input x: int32[61]\ny[i: 64] = x[(i * 100000007 + 4000000000) // 7 % 61]\n",
           "input x: int32[61]\ny[i: 8, j: 8] = x[(i * 1000000007 - j * 900000011 + 6400000077) % "
           "61]\n",
           "input x: int32[50]\ny[i: 64] = sum(k: 8) x[(i * 50000017 + k * 400000009) % 50]\n",
       }) {
    EXPECT_THAT(CudaOf(text), HasSubstr("long long")) << CudaOf(text);
    ASSERT_OK_AND_ASSIGN(const ir::Program program, Lowered(text));
    ASSERT_OK_AND_ASSIGN(const CudaSource source, GenerateCuda(program));
    SCOPED_TRACE(source.text);
    EXPECT_OK(CompareEmulated(program, 3, 0));
  }
}

}  // namespace
}  // namespace kiln::codegen
