// Checks the list of other variants of operators, and that they compute the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/status_testing.h"
#include "compiler/dag/evaluate.h"
#include "compiler/dag/ops/registry.h"

namespace kiln::dag {
namespace {

using ir::NDArray;

// Returns "" if there is no variant.
std::string FormOf(std::string_view op, std::string_view args, bool gpu = false,
                   ir::Type dtype = ir::kFloat32) {
  const auto variants = AlgorithmVariants(op, args, {.dtype = dtype}, gpu);
  EXPECT_OK(variants);
  if (!variants.ok() || variants->empty()) return "";
  EXPECT_EQ(variants->size(), 1u);
  return variants->front().name;
}

TEST(AlgorithmVariants, WhereTheyAre) {
  EXPECT_EQ(FormOf("conv2d_nhwc", "1,56,56,64,64,3,3,1,1"), "winograd F(4,3)");
  EXPECT_EQ(FormOf("conv2d_nhwc", "1,56,56,64,64,3,3,1,1", false, ir::kFloat64), "winograd F(4,3)");
  EXPECT_EQ(FormOf("conv2d_nhwc", "1,56,56,64,64,3,3,2,1"), "winograd F(2,3) of stride 2");
  EXPECT_EQ(FormOf("conv2d_nhwc", "1,56,56,64,64,3,3,2,1", true), "");
  for (const char* args : {"1,56,56,64,64,3,3,3,1", "1,56,56,64,64,1,1,1,0", "1,9,9,4,4,5,3,1,1",
                           "1,9,9,4,4,3,3,1,1,2", "1,9,9,4,4,3,3,1,1,1,2"}) {
    EXPECT_EQ(FormOf("conv2d_nhwc", args), "") << args;
  }
  for (ir::Type type : {ir::kFloat16, ir::kBFloat16, ir::kFloat8E4M3, ir::kInt8}) {
    EXPECT_EQ(FormOf("conv2d_nhwc", "1,9,9,4,4,3,3,1,1", false, type), "") << ir::TypeName(type);
  }
  EXPECT_EQ(FormOf("conv2d_nchw", "1,9,9,4,4,3,3,1,1"), "");
  EXPECT_EQ(FormOf("matmul", "8,8,8"), "");
  EXPECT_FALSE(AlgorithmVariants("conv2d_nhwc", "1,9", {}, false).ok());
  EXPECT_FALSE(AlgorithmVariants("conv2d_nhcw", "1,9", {}, false).ok());
}

TEST(AlgorithmVariants, TheTileSuitsSizeAndDevice) {
  EXPECT_EQ(FormOf("conv2d_nhwc", "1,7,7,512,512,3,3,1,1"), "winograd F(2,3)");
  EXPECT_EQ(FormOf("conv2d_nhwc", "2,7,7,512,512,3,3,1,1"), "winograd F(4,3)");
  EXPECT_EQ(FormOf("conv2d_nhwc", "1,14,14,256,256,3,3,1,1"), "winograd F(4,3)");
  EXPECT_EQ(FormOf("conv2d_nhwc", "1,28,28,128,128,3,3,1,1", true), "winograd F(2,3)");
  EXPECT_EQ(FormOf("conv2d_nhwc", "1,56,56,64,64,3,3,1,1", true), "winograd F(4,3)");
}

// Returns the largest difference between the direct variant in wide accumulation and the other one,
// relative to the largest value of the output.
double Difference(std::string_view args, std::string_view epilogue, bool gpu, ir::Type dtype) {
  const OpOptions options{.dtype = dtype, .epilogue = SplitEpilogue(epilogue)};
  const auto variants = AlgorithmVariants("conv2d_nhwc", args, options, gpu);
  EXPECT_OK(variants);
  const AlgorithmVariant& variant = variants->front();
  const auto direct = BuildOp("conv2d_nhwc", args, options);
  const auto other = BuildOp(variant.op, variant.args, options);
  const auto prepare = BuildOp(variant.prepare_op, variant.prepare_args, {.dtype = dtype});
  EXPECT_OK(direct);
  EXPECT_OK(other);
  EXPECT_OK(prepare);
  std::vector<NDArray> inputs = RandomInputs(**direct, 5);
  const auto want = Evaluate(**direct, inputs, {.wide_accumulation = true});
  EXPECT_OK(want);
  const NDArray plain = inputs[static_cast<size_t>(variant.prepared)];
  const auto prepared = Evaluate(**prepare, std::span(&plain, 1));
  EXPECT_OK(prepared);
  inputs[static_cast<size_t>(variant.prepared)] = prepared->front();
  const auto got = Evaluate(**other, inputs);
  EXPECT_OK(got);
  EXPECT_EQ(got->front().shape(), want->front().shape());
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < want->front().num_elements(); ++i) {
    const double w = want->front().GetDouble(i);
    largest = std::max(largest, std::fabs(w));
    difference = std::max(difference, std::fabs(got->front().GetDouble(i) - w));
  }
  return difference / largest;
}

// docs/operators.md promises this tolerance.
TEST(AlgorithmVariants, TheAnswerIsTheDirectVariantsWithinTheTolerance) {
  constexpr const char* kShapes[] = {
      "1,7,7,5,16,3,3,1,1",   "2,8,8,3,4,3,3,1,1",  "1,13,17,2,3,3,3,1,1", "3,5,4,1,1,3,3,1,1",
      "1,9,6,64,2,3,3,1,0",   "1,3,3,2,7,3,3,1,2",  "1,1,1,4,4,3,3,1,1",   "1,12,11,33,3,3,3,1,1",
      "1,6,10,2,256,3,3,1,1", "1,43,40,1,2,3,3,1,1"};
  for (const char* args : kShapes) {
    for (bool gpu : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", args, gpu ? "gpu" : "cpu"));
      EXPECT_LT(Difference(args, "", gpu, ir::kFloat32), 1e-5);
      EXPECT_LT(Difference(args, gpu ? "bias,relu" : "residual", gpu, ir::kFloat64), 1e-13);
    }
  }
}

// Tests images whose last tile ends before the padding, with it and behind it.
TEST(AlgorithmVariants, SoIsThatOfStride2) {
  for (const int pad : {0, 1, 2}) {
    for (int extent = 3; extent <= 12; ++extent) {
      for (const int width : {3, 8, 13}) {
        const std::string args = fmt::format("2,{},{},3,5,3,3,2,{}", extent, width, pad);
        SCOPED_TRACE(args);
        EXPECT_LT(Difference(args, "bias,relu", false, ir::kFloat32), 1e-5);
        EXPECT_LT(Difference(args, "residual", false, ir::kFloat64), 1e-13);
      }
    }
  }
}

TEST(AlgorithmVariants, KernelsWithoutAStride2TransformAreRefused) {
  for (const char* args : {"1,8,8,4,4,stride=2", "1,8,8,4,4,tile=4,by_rows=1,stride=2"}) {
    EXPECT_THAT(
        BuildOp("conv2d_winograd_nhwc", args),
        StatusIs(StatusCode::kInvalidArgument,
                 testing::HasSubstr("stride 2 has a transform for tile = 2 and by_rows = 1")));
  }
}

}  // namespace
}  // namespace kiln::dag
