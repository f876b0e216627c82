// Programs of many kernels: code size and compile time grow with their number, not with its square.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/status_testing.h"
#include "compiler/codegen/chain_testing.h"
#include "compiler/codegen/llvm/llvm.h"
#include "compiler/codegen/llvm/reference_testing.h"

namespace kiln::codegen {
namespace {

using ir::LoopKind;

TEST(Chain, IsRight) {
  for (const LoopKind kind : {LoopKind::kSerial, LoopKind::kVectorized, LoopKind::kParallel})
    EXPECT_OK(CompareWithReference(MakeChain(40, kind), 3, 0));
}

// The text for 4 times the kernels is 4 times as long, except for longer numbers.
TEST(Chain, ModulesGrowWithTheNumberOfKernels) {
  for (const LoopKind kind : {LoopKind::kSerial, LoopKind::kParallel}) {
    const auto size_of = [&](int length) {
      const auto text = PrintLlvmIr(MakeChain(length, kind), {}, {.optimize = false});
      EXPECT_OK(text.status());
      return text.ok() ? static_cast<double>(text->size()) : 0;
    };
    EXPECT_LT(size_of(400) / size_of(100), 4.5) << ir::LoopKindName(kind);
  }
}

// 4 times the kernels may take at most 8 times as long. The smaller of two readings counts, because
// other work on the machine makes readings longer.
TEST(Chain, PassesTakeTimeByTheNumberOfKernels) {
  const auto seconds_of = [](int length) {
    double least = 1e9;
    for (int i = 0; i < 2; ++i) {
      LlvmTimes times;
      EXPECT_OK(
          CompileLlvm(MakeChain(length, LoopKind::kVectorized), {}, {.times = &times}).status());
      least = std::min(least, times.generate_ms + times.optimize_ms + times.codegen_ms);
    }
    return least;
  };
  EXPECT_LT(seconds_of(1200) / seconds_of(300), 4 * 2.0);
}

// Kernels of equal code are compiled to one function, so 1,000 of them give no more functions than
// 200 do.
TEST(Chain, EqualKernelsAreCompiledOnce) {
  for (const LoopKind kind : {LoopKind::kVectorized, LoopKind::kParallel}) {
    EXPECT_OK(CompareWithReference(MakeChain(300, kind), 3, 0));
    const auto functions_of = [&](int length) {
      const std::string text = PrintAssembly(MakeChain(length, kind), {}).value_or("");
      int count = 0;
      for (size_t at = 0; (at = text.find("@function", at)) != std::string::npos; ++at) ++count;
      return count;
    };
    const int few = functions_of(200);
    EXPECT_GT(few, 0);
    EXPECT_EQ(functions_of(1000), few) << ir::LoopKindName(kind);
    EXPECT_GE(functions_of(50), 50) << ir::LoopKindName(kind);
  }
}

TEST(Chain, VectorWidthOfTheTargetIsThatOfTheCode) {
  const ir::Program program = MakeChain(1, LoopKind::kVectorized);
  const auto code_for = [&](const char* width) {
    target::Target target{.kind = &target::kLlvm, .options = {{"mcpu", "x86-64-v4"}}};
    if (*width != 0) target.options["vector-width"] = width;
    return PrintAssembly(program, target).value_or("");
  };
  EXPECT_THAT(code_for(""), testing::HasSubstr("%zmm"));
  EXPECT_THAT(code_for("256"),
              testing::AllOf(testing::HasSubstr("%ymm"), testing::Not(testing::HasSubstr("%zmm"))));
}

TEST(Chain, VectorsNarrowerThanLlvmsAreRefused) {
  const target::Target target{.kind = &target::kLlvm,
                              .options = {{"mcpu", "x86-64-v3"}, {"vector-width", "128"}}};
  EXPECT_THAT(ResolveCpu(target),
              StatusIs(StatusCode::kInvalidArgument, testing::HasSubstr("-mattr=-avx")));
}

TEST(Chain, VectorsWiderThanTheProcessorsAreRefused) {
  const target::Target target{.kind = &target::kLlvm,
                              .options = {{"mcpu", "x86-64-v3"}, {"vector-width", "512"}}};
  EXPECT_THAT(ResolveCpu(target),
              StatusIs(StatusCode::kInvalidArgument,
                       testing::HasSubstr("x86-64-v3 has vectors of 256 bits")));
}

}  // namespace
}  // namespace kiln::codegen
