#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "base/status_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"

namespace kiln::codegen {
namespace {
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

StatusOr<std::string> KernelOfDag(const std::string& text) {
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(text));
  KILN_ASSIGN_OR_RETURN(const ir::Program program,
                        lower::Lower(schedule::State(dag), {.gpu = true}));
  KILN_ASSIGN_OR_RETURN(const CudaSource source, GenerateCuda(program));
  // Functions that convert and compare floats stand before the kernel.
  return source.text.substr(source.text.find("__global__"));
}

std::string ArgReduction(std::string_view reduction, std::string_view type) {
  return fmt::format("input A: {0}[5, 7]\nM[i: 5] = {1}(k: 7) (int32(k), A[i, k])\n", type,
                     reduction);
}

TEST(ArgChoice, FloatsAreComparedFiveTimes) {
  const auto argmax = KernelOfDag(ArgReduction("argmax", "float32"));
  ASSERT_OK(argmax);
  const std::string value = "A[i_1 * 7 + k]", best = "M_v1[i_1]";
  EXPECT_THAT(*argmax, HasSubstr(absl::StrReplaceAll(
                           "(!(V <= B) & (B == B)) | ((k < M_v0[i_1]) & ((V == B) | (V != V))) ?",
                           {{"V", value}, {"B", best}})));
  EXPECT_THAT(*argmax, HasSubstr(fmt::format("{} = maximum({}, {});", best, best, value)));
}

TEST(ArgChoice, TheOtherDirectionIsArgmin) {
  const auto argmin = KernelOfDag(ArgReduction("argmin", "float32"));
  ASSERT_OK(argmin);
  EXPECT_THAT(*argmin, AllOf(HasSubstr(" >= "), HasSubstr(" = minimum("), Not(HasSubstr(" <= "))));
}

TEST(ArgChoice, ShortFloatsAreMovedAndNotConverted) {
  const auto argmax = KernelOfDag(ArgReduction("argmax", "float16"));
  ASSERT_OK(argmax);
  EXPECT_THAT(*argmax, AllOf(HasSubstr(" <= "), Not(HasSubstr("maximum("))));
}

TEST(ArgChoice, IntegersHaveNoNan) {
  const auto argmax = KernelOfDag(ArgReduction("argmax", "int32"));
  ASSERT_OK(argmax);
  EXPECT_THAT(*argmax, AllOf(Not(HasSubstr(" <= ")), Not(HasSubstr("max("))));
}

TEST(ArgChoice, ChoicesThatDifferInOnePlaceAreLeft) {
  const auto kernel_of = [](std::string_view value) {
    return KernelOfDag(
        fmt::format("input x: float32[64]\ninput z: float32[64]\ny[i: 64] = {}\n", value));
  };
  const auto extreme =
      kernel_of("select(!(x[i] < z[i]) && (x[i] > z[i] || x[i] != x[i]), x[i], z[i])");
  ASSERT_OK(extreme);
  EXPECT_THAT(*extreme, HasSubstr("= maximum(z["));
  for (const char* other : {
           "select(!(x[i] > z[i]) && (x[i] > z[i] || x[i] != x[i]), x[i], z[i])",
           "select(!(x[i] < z[i]) && (x[i] > z[i] || z[i] != z[i]), x[i], z[i])",
           "select(!(x[i] < z[i]) && (x[i] > z[i] || x[i] != x[i]), z[i], x[i])",
           "select(!(x[i] < z[i]) && (x[i] >= z[i] || x[i] != x[i]), x[i], z[i])",
           "select(!(x[i] <= z[i]) && (x[i] > z[i] || x[i] != x[i]), x[i], z[i])",
       }) {
    const auto kernel = kernel_of(other);
    ASSERT_OK(kernel);
    EXPECT_THAT(*kernel, AllOf(HasSubstr(" ? "), Not(HasSubstr("imum(")))) << other;
  }
}

}  // namespace
}  // namespace kiln::codegen
