#include "compiler/dag/workload_key.h"

#include "base/status_testing.h"
#include "compiler/dag/builder.h"
#include "compiler/dag/hash_text.h"

namespace kiln::dag {
namespace {

TEST(HashText, DenseWithBias) {
  DagBuilder b;
  TensorRef p0 = b.Placeholder("p0", ir::kFloat32, {1, 512});
  TensorRef p1 = b.Placeholder("p1", ir::kFloat32, {1000, 512});
  TensorRef p2 = b.Placeholder("p2", ir::kFloat32, {1, 1000});
  TensorRef mm = b.Reduce("T_matmul_NT", {{"i", 1}, {"j", 1000}}, {{"k", 512}}, Combiner::kSum,
                          [&](Vars v) { return p0(v[0], v[2]) * p1(v[1], v[2]); });
  b.Compute("T_add", {{"ax0", 1}, {"ax1", 1000}},
            [&](Vars v) { return mm(v[0], v[1]) + p2(v[0], v[1]); });
  ASSERT_OK_AND_ASSIGN(DagPtr dag, b.Build());
  EXPECT_EQ(HashText(*dag),
            "p0 = PLACEHOLDER \np1 = PLACEHOLDER \nT_matmul_NT(i, j) += (p0[i, k]*p1[j, k])\n"
            "p2 = PLACEHOLDER \nT_add(ax0, ax1) = (T_matmul_NT[ax0, ax1] + p2[ax0, ax1])\n");
  EXPECT_EQ(WorkloadKey(*dag),
            "[\"00a059b856ac30ac172b6252254479a6\", [1, 512], [1000, 512], [1, 1000], [1, 1000]]");
}

TEST(HashText, Forms) {
  DagBuilder b;
  TensorRef x = b.Placeholder("x", ir::kFloat32, {4, 6});
  TensorRef m = b.ReduceArg("m", {{"i", 4}}, {{"k", 6}}, Combiner::kArgMax, [&](Vars v) {
    return std::pair(Cast(ir::kInt32, v[1]), x(v[0], v[1]));
  });
  b.Compute("y", {{"i", 4}}, [&](Vars v) {
    return Select(m(v[0]) > 2 && !(v[0] == 1), Max(m.output(1)(v[0]), -2.5),
                  Tanh(x(v[0], FloorDiv(v[0], 2))) / 0.5);
  });
  b.Reduce("p", {{"i", 4}}, {{"k", 6}}, Combiner::kProd, [&](Vars v) { return x(v[0], v[1] % 3); });
  ASSERT_OK_AND_ASSIGN(DagPtr dag, b.Build());
  EXPECT_EQ(HashText(*dag),
            "x = PLACEHOLDER \n"
            "m(i).v0 select(((argmax_lhs_1 > argmax_rhs_1) || ((argmax_lhs_1 == argmax_rhs_1) && "
            "(argmax_lhs_0 < "
            "argmax_rhs_0))), argmax_lhs_0, argmax_rhs_0)= (k,x[i, k])\n"
            "m(i).v1 select(((argmax_lhs_1 > argmax_rhs_1) || ((argmax_lhs_1 == argmax_rhs_1) && "
            "(argmax_lhs_0 < "
            "argmax_rhs_0))), argmax_lhs_0, argmax_rhs_0)= (k,x[i, k])\n"
            "y(i) = select(((m.v0[i] > 2) && !(i == 1)), max(m.v1[i], -2.5f), (tir.tanh(x[i, "
            "floordiv(i, 2)])/0.5f))\n"
            "p(i)reduce(x*y)\n");
}

TEST(WorkloadKey, StandsInOneForm) {
  EXPECT_EQ(NormalizedKey("[\"wl_matmul\",127,96,  80]"), "[\"wl_matmul\", 127, 96, 80]");
  EXPECT_EQ(NormalizedKey(" x"), " x");
  EXPECT_EQ(NormalizedKey("[\"a, \\\" ,b\",[1,2]]"), "[\"a, \\\" ,b\", [1, 2]]");
  EXPECT_EQ(NormalizedKey("[\"a\\"), "[\"a\\");
  EXPECT_EQ(NormalizedKey("[\"a\",\n8]"), "[\"a\", 8]");
  // The text is no JSON. Without its spaces it would be the key of another computation.
  EXPECT_EQ(NormalizedKey("[\"a\", 1 2]"), "[\"a\", 1 2]");
}

}  // namespace
}  // namespace kiln::dag
