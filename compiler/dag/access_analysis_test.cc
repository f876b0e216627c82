#include "compiler/dag/access_analysis.h"

#include <gtest/gtest.h>

#include "compiler/dag/builder.h"

namespace kiln::dag {
namespace {

DagPtr MustBuild(DagBuilder& b) {
  StatusOr<DagPtr> dag = b.Build();
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  return *dag;
}

TEST(AccessAnalysis, PaddedConvolutionWithBiasAndRelu) {
  DagBuilder b;
  auto data = b.Placeholder("data", ir::kFloat32, {1, 8, 7, 7});
  auto pad = b.Compute("pad", {{"i0", 1}, {"i1", 8}, {"i2", 9}, {"i3", 9}}, [&](Vars v) {
    return If(v[2] >= 1 && v[2] < 8 && v[3] >= 1 && v[3] < 8, data(v[0], v[1], v[2] - 1, v[3] - 1),
              0.0);
  });
  auto weight = b.Placeholder("weight", ir::kFloat32, {16, 8, 3, 3});
  auto conv =
      b.Reduce("conv", {{"nn", 1}, {"ff", 16}, {"yy", 7}, {"xx", 7}},
               {{"rc", 8}, {"ry", 3}, {"rx", 3}}, Combiner::kSum, [&](Vars v) {
                 return pad(v[0], v[4], v[2] + v[5], v[3] + v[6]) * weight(v[1], v[4], v[5], v[6]);
               });
  auto bias = b.Placeholder("bias", ir::kFloat32, {16});
  auto add = b.Compute("add", {{"a", 1}, {"b", 16}, {"c", 7}, {"d", 7}},
                       [&](Vars v) { return conv(v[0], v[1], v[2], v[3]) + bias(v[1]); });
  b.Compute("relu", {{"a", 1}, {"b", 16}, {"c", 7}, {"d", 7}},
            [&](Vars v) { return Max(add(v[0], v[1], v[2], v[3]), 0.0); });
  // The operators are data 0, pad 1, weight 2, conv 3, bias 4, add 5, relu 6.
  const DagPtr dag = MustBuild(b);
  const AccessAnalysis a(*dag);

  EXPECT_TRUE(a.is_simple_access(1));
  EXPECT_FALSE(a.is_strictly_inlineable(1)) << "a branch";
  EXPECT_FALSE(a.is_simple_access(3));
  EXPECT_TRUE(a.needs_multi_level_tiling(3));
  EXPECT_FALSE(a.needs_multi_level_tiling(1));
  EXPECT_TRUE(a.is_strictly_inlineable(5)) << "a missing axis does not matter";
  EXPECT_FALSE(a.is_strictly_inlineable(0)) << "a placeholder";
  EXPECT_TRUE(a.is_output(6));
  EXPECT_TRUE(a.elementwise_match(3, 6));
  EXPECT_TRUE(a.elementwise_match(3, 5));
  EXPECT_FALSE(a.elementwise_match(1, 3));
  EXPECT_FALSE(a.elementwise_match(4, 5)) << "the bias is broadcast";
  EXPECT_EQ(a.num_common_outer_iterators(3, 6), 4);
  EXPECT_EQ(a.num_common_outer_iterators(1, 3), 1) << "only the batch";
  EXPECT_EQ(a.num_common_outer_iterators(6, 3), 4) << "symmetric";
}

TEST(AccessAnalysis, MatmulPoolSoftmaxTranspose) {
  DagBuilder b;
  auto x = b.Placeholder("x", ir::kFloat32, {4, 6});
  auto w = b.Placeholder("w", ir::kFloat32, {6, 4});
  auto mm = b.Reduce("mm", {{"i", 4}, {"j", 4}}, {{"k", 6}}, Combiner::kSum,
                     [&](Vars v) { return x(v[0], v[2]) * w(v[2], v[1]); });
  auto m =
      b.Reduce("m", {{"i", 4}}, {{"k", 4}}, Combiner::kMax, [&](Vars v) { return mm(v[0], v[1]); });
  auto e =
      b.Compute("e", {{"i", 4}, {"j", 4}}, [&](Vars v) { return Exp(mm(v[0], v[1]) - m(v[0])); });
  b.Compute("t", {{"i", 4}, {"j", 4}}, [&](Vars v) { return e(v[1], v[0]) + 1.0; });
  // The operators are x 0, w 1, mm 2, m 3, e 4, t 5.
  const DagPtr dag = MustBuild(b);
  const AccessAnalysis a(*dag);
  EXPECT_TRUE(a.needs_multi_level_tiling(2));
  EXPECT_FALSE(a.needs_multi_level_tiling(3)) << "its input uses every spatial axis";
  EXPECT_FALSE(a.is_strictly_inlineable(4)) << "exp is expensive";
  EXPECT_TRUE(a.is_simple_access(5));
  EXPECT_FALSE(a.is_strictly_inlineable(5)) << "axes out of order";
  EXPECT_FALSE(a.elementwise_match(4, 5));
  EXPECT_EQ(a.num_common_outer_iterators(2, 4), 1) << "through m only the row is common";
  EXPECT_EQ(a.num_common_outer_iterators(4, 5), 0);
}

TEST(AccessAnalysis, BroadcastOuterProductIsTiled) {
  DagBuilder b;
  auto x = b.Placeholder("x", ir::kFloat32, {4});
  auto y = b.Placeholder("y", ir::kFloat32, {5});
  b.Compute("o", {{"i", 4}, {"j", 5}}, [&](Vars v) { return x(v[0]) * y(v[1]); });
  const DagPtr dag = MustBuild(b);
  EXPECT_TRUE(AccessAnalysis(*dag).needs_multi_level_tiling(2));
}

}  // namespace
}  // namespace kiln::dag
