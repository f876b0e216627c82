#include "compiler/dag/packed_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"

namespace kiln::dag {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

bool Any(int) { return true; }

DagPtr Text(std::string_view text) {
  auto dag = ParseDag(text);
  EXPECT_OK(dag.status());
  return *dag;
}

TEST(PackedInputsTest, WeightsOfProducts) {
  for (const auto& [op, args, weight] :
       {std::tuple("matmul", "4,4,4", 1), std::tuple("dense", "4,4,4", 1),
        std::tuple("batch_matmul", "2,4,4,4", 1),
        std::tuple("conv2d_nhwc", "1,4,4,4,4,3,3,1,0", 2)}) {
    ASSERT_OK_AND_ASSIGN(const DagPtr dag, BuildOp(op, args));
    EXPECT_THAT(PackedInputs(*dag), IsEmpty());
    const DagPtr packed = PackInputs(dag, Any);
    EXPECT_THAT(PackedInputs(*packed), ElementsAre(weight)) << PrintDag(*packed);
    EXPECT_THAT(PrintDag(*packed), HasSubstr("@packed_placeholders(p1)"));
  }
}

TEST(PackedInputsTest, OnlyConstantsThatOneOperatorReads) {
  const DagPtr dag = Text(
      "input x: float32[4, 4]\ninput w: float32[4, 4]\n"
      "@layout_free_placeholders(w)\ny[i: 4, j: 4] = sum(k: 4) x[i, k] * w[k, j]\n");
  EXPECT_EQ(PackInputs(dag, [](int) { return false; }), dag);
  EXPECT_EQ(PackInputs(dag, [](int op) { return op == 0; }), dag);
  EXPECT_THAT(PackedInputs(*PackInputs(dag, [](int op) { return op == 1; })), ElementsAre(1));
  const DagPtr twice = Text(
      "input x: float32[4, 4]\ninput w: float32[4, 4]\n"
      "@layout_free_placeholders(w)\ny[i: 4, j: 4] = sum(k: 4) x[i, k] * w[k, j]\n"
      "z[i: 4, j: 4] = y[i, j] + w[i, j]\n");
  EXPECT_EQ(PackInputs(twice, Any), twice);
  // A text may ask for a packing that is impossible.
  const DagPtr asked = Text(
      "input x: float32[4, 4]\ninput w: float32[4, 4]\n"
      "@packed_placeholders(w)\ny[i: 4, j: 4] = sum(k: 4) x[i, k] * w[k, j]\n"
      "z[i: 4, j: 4] = y[i, j] + w[i, j]\n");
  EXPECT_THAT(PackedInputs(*asked), IsEmpty());
  const DagPtr made = Text(
      "input x: float32[4]\na[i: 4] = x[i] + 1.0\n"
      "@layout_free_placeholders(a) @packed_placeholders(a)\ny[i: 4] = a[i] * 2.0\n");
  EXPECT_THAT(PackedInputs(*made), IsEmpty());
}

TEST(PackedInputsTest, IsAnotherComputationOfAnotherKey) {
  ASSERT_OK_AND_ASSIGN(const DagPtr dag, BuildOp("conv2d_nhwc", "1,4,4,4,4,3,3,1,0"));
  const DagPtr packed = PackInputs(dag, Any);
  EXPECT_NE(WorkloadId(*packed), WorkloadId(*dag));
  const std::string key = WorkloadKey(*dag), packed_key = WorkloadKey(*packed);
  EXPECT_EQ(packed_key, key.substr(0, key.size() - 1) + ", \"packed\"]");
  EXPECT_EQ(NormalizedKey(packed_key), packed_key);
  ASSERT_OK_AND_ASSIGN(const DagPtr parsed, ParseDag(PrintDag(*packed)));
  EXPECT_TRUE(Equal(*parsed, *packed));
  EXPECT_EQ(WorkloadId(*PlainInputs(packed)), WorkloadId(*dag));
  EXPECT_EQ(PlainInputs(dag), dag);
}

}  // namespace
}  // namespace kiln::dag
