#include "base/status_testing.h"
#include "compiler/dag/access_analysis.h"
#include "compiler/dag/builder.h"
#include "compiler/dag/ops/registry.h"

namespace kiln::dag {
namespace {

// Returns the operator with this name.
int Find(const Dag& dag, std::string_view name) {
  for (int i = 0; i < dag.size(); ++i) {
    if (dag.op(i).name() == name) return i;
  }
  ADD_FAILURE() << "no operator " << name;
  return 0;
}

TEST(AccessAnalysisOfOperators, Convolution) {
  ASSERT_OK_AND_ASSIGN(
      DagPtr dag, BuildOp("conv2d_nhwc", "1,14,14,8,4,3,3,1,1", {.epilogue = {"bias", "relu"}}));
  const AccessAnalysis a(*dag);
  const int pad = Find(*dag, "pad_temp"), conv = Find(*dag, "conv2d_nhwc"),
            add = Find(*dag, "T_add"), relu = Find(*dag, "T_relu"), p0 = Find(*dag, "p0");
  EXPECT_TRUE(a.is_simple_access(pad));
  // The padding has a branch.
  EXPECT_FALSE(a.is_strictly_inlineable(pad));
  EXPECT_FALSE(a.needs_multi_level_tiling(pad));
  EXPECT_FALSE(a.is_simple_access(conv));
  EXPECT_TRUE(a.needs_multi_level_tiling(conv));
  // The bias lacks an axis, which does not matter.
  EXPECT_TRUE(a.is_strictly_inlineable(add));
  EXPECT_FALSE(a.needs_multi_level_tiling(add));
  EXPECT_TRUE(a.is_strictly_inlineable(relu));
  EXPECT_FALSE(a.is_strictly_inlineable(p0));
  EXPECT_TRUE(a.is_simple_access(p0));
  EXPECT_TRUE(a.is_output(relu));
  EXPECT_FALSE(a.is_output(conv));
  EXPECT_TRUE(a.elementwise_match(conv, relu));
  EXPECT_TRUE(a.elementwise_match(conv, add));
  EXPECT_FALSE(a.elementwise_match(pad, conv));
  EXPECT_FALSE(a.elementwise_match(relu, conv));
  EXPECT_EQ(a.num_common_outer_iterators(conv, relu), 4);
  // Only the batch is common.
  EXPECT_EQ(a.num_common_outer_iterators(pad, conv), 1);
  EXPECT_EQ(a.num_common_outer_iterators(pad, relu), 1);
  // Both first extents are 1.
  EXPECT_EQ(a.num_common_outer_iterators(Find(*dag, "p2"), relu), 1);
  EXPECT_EQ(a.num_common_outer_iterators(Find(*dag, "p2"), conv), 0);
}

TEST(AccessAnalysisOfOperators, Matmul) {
  ASSERT_OK_AND_ASSIGN(DagPtr dag, BuildOp("matmul", "8,8,8"));
  const AccessAnalysis a(*dag);
  EXPECT_TRUE(a.needs_multi_level_tiling(2));
  // The axis k is not spatial.
  EXPECT_FALSE(a.is_simple_access(2));
  EXPECT_EQ(a.num_common_outer_iterators(0, 2), 1);
  EXPECT_EQ(a.num_common_outer_iterators(1, 2), 0);
}

TEST(AccessAnalysisOfOperators, VectorMatrixHasOneReusedInput) {
  // With one row, only the vector lacks an axis: one reused producer and a reduction are enough.
  ASSERT_OK_AND_ASSIGN(DagPtr dag, BuildOp("dense", "1,16,8"));
  EXPECT_TRUE(AccessAnalysis(*dag).needs_multi_level_tiling(2));
  // A dot product reuses no elements.
  ASSERT_OK_AND_ASSIGN(DagPtr dot, BuildOp("dense", "1,1,8"));
  EXPECT_FALSE(AccessAnalysis(*dot).needs_multi_level_tiling(2));
}

TEST(AccessAnalysisOfOperators, PoolingReadsEachElementForOneOutput) {
  ASSERT_OK_AND_ASSIGN(DagPtr dag, BuildOp("max_pool2d_nhwc", "1,8,8,4,3,3,2,1"));
  const AccessAnalysis a(*dag);
  EXPECT_FALSE(a.needs_multi_level_tiling(Find(*dag, "pool_max")));
}

TEST(AccessAnalysisOfOperators, Softmax) {
  ASSERT_OK_AND_ASSIGN(DagPtr dag, BuildOp("softmax", "3,7"));
  const AccessAnalysis a(*dag);
  const int max = Find(*dag, "T_softmax_maxelem"), exp = Find(*dag, "T_softmax_exp"),
            sum = Find(*dag, "T_softmax_expsum"), norm = Find(*dag, "T_softmax_norm");
  for (int op : {max, exp, sum, norm}) EXPECT_FALSE(a.needs_multi_level_tiling(op)) << op;
  EXPECT_TRUE(a.is_simple_access(exp));
  // Exp is expensive.
  EXPECT_FALSE(a.is_strictly_inlineable(exp));
  EXPECT_TRUE(a.is_strictly_inlineable(norm));
  EXPECT_FALSE(a.is_simple_access(max));
  // There are two readers.
  EXPECT_FALSE(a.elementwise_match(exp, norm));
  EXPECT_EQ(a.num_common_outer_iterators(max, norm), 1);
  // The path leads through the sum.
  EXPECT_EQ(a.num_common_outer_iterators(exp, norm), 1);
}

TEST(AccessAnalysisOfOperators, BroadcastOuterProduct) {
  DagBuilder b;
  TensorRef x = b.Placeholder("x", ir::kFloat32, {8});
  TensorRef y = b.Placeholder("y", ir::kFloat32, {6});
  b.Compute("z", {{"i", 8}, {"j", 6}}, [&](Vars v) { return x(v[0]) * y(v[1]); });
  ASSERT_OK_AND_ASSIGN(DagPtr dag, b.Build());
  const AccessAnalysis a(*dag);
  EXPECT_TRUE(a.needs_multi_level_tiling(2));
  EXPECT_TRUE(a.is_strictly_inlineable(2));
}

TEST(AccessAnalysisOfOperators, SeveralOutputsReuseAScaleAndAShiftNoMoreThanOneOfThem) {
  // `second` is the extent of the axis of y.
  const auto needs_tiling = [](int64_t second) {
    DagBuilder b;
    TensorRef x = b.Placeholder("x", ir::kFloat32, {6});
    TensorRef y = b.Placeholder("y", ir::kFloat32, {second});
    TensorRef s = b.Placeholder("s", ir::kFloat32, {});
    b.Tuple("z", {{"i", 8}, {"j", 6}}, {}, Combiner::kNone, [&](Vars v) {
      return std::vector{x(v[1]) * y(v[second == 6 ? 1 : 0]), x(v[1]) * s()};
    });
    return AccessAnalysis(**b.Build()).needs_multi_level_tiling(3);
  };
  EXPECT_FALSE(needs_tiling(6));
  EXPECT_TRUE(needs_tiling(8)) << "an outer product";
}

TEST(AccessAnalysisOfOperators, TransposeAndDiagonalAreSimpleButNotStrict) {
  DagBuilder b;
  TensorRef x = b.Placeholder("x", ir::kFloat32, {8, 8});
  TensorRef t = b.Compute("t", {{"i", 8}, {"j", 8}}, [&](Vars v) { return x(v[1], v[0]); });
  TensorRef d =
      b.Compute("d", {{"i", 8}, {"j", 8}}, [&](Vars v) { return t(v[0], v[0]) + t(v[0], v[1]); });
  b.Compute("s", {{"i", 7}, {"j", 8}}, [&](Vars v) { return d(v[0] + 1, v[1]) - d(0, v[1]); });
  ASSERT_OK_AND_ASSIGN(DagPtr dag, b.Build());
  const AccessAnalysis a(*dag);
  EXPECT_TRUE(a.is_simple_access(1));
  EXPECT_FALSE(a.is_strictly_inlineable(1));
  EXPECT_TRUE(a.is_simple_access(2));
  EXPECT_FALSE(a.is_strictly_inlineable(2));
  EXPECT_TRUE(a.is_strictly_inlineable(3));
  EXPECT_FALSE(a.elementwise_match(1, 2));
  // The shapes differ.
  EXPECT_FALSE(a.elementwise_match(2, 3));
  EXPECT_EQ(a.num_common_outer_iterators(2, 3), 0);
}

TEST(AccessAnalysisOfOperators, Winograd) {
  ASSERT_OK_AND_ASSIGN(
      DagPtr dag, BuildOp("conv2d_winograd_nhwc", "1,14,14,8,8", {.epilogue = {"bias", "relu"}}));
  const AccessAnalysis a(*dag);
  // The operator selects, but it reads nothing.
  EXPECT_TRUE(a.is_strictly_inlineable(Find(*dag, "A")));
  EXPECT_TRUE(a.is_strictly_inlineable(Find(*dag, "B")));
  EXPECT_FALSE(a.needs_multi_level_tiling(Find(*dag, "data_pack")));
  EXPECT_FALSE(a.needs_multi_level_tiling(Find(*dag, "inverse")));
  EXPECT_TRUE(a.needs_multi_level_tiling(Find(*dag, "bgemm")));
  EXPECT_FALSE(a.is_simple_access(Find(*dag, "input_tile")));
}

}  // namespace
}  // namespace kiln::dag
