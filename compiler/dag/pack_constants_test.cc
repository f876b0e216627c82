#include "compiler/dag/pack_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/packed_inputs.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"

namespace kiln::dag {
namespace {

using testing::ElementsAre;

bool Any(int) { return true; }

DagPtr Text(std::string_view text) {
  auto dag = ParseDag(text);
  EXPECT_OK(dag.status());
  return *dag;
}

constexpr std::string_view kProduct =
    "input x: float32[4, 4]\ninput w: float32[4, 4]\n"
    "y[i: 4, j: 4] = sum(k: 4) x[i, k] * w[k, j]\n";

TEST(PackConstantsTest, PacksTheRequestedConstants) {
  const DagPtr dag = Text(kProduct);
  EXPECT_EQ(PackConstants(dag, [](int) { return false; }), dag);
  EXPECT_THAT(PackedInputs(*PackConstants(dag, [](int op) { return op == 0; })), ElementsAre(0));
  EXPECT_THAT(PackedInputs(*PackConstants(dag, [](int op) { return op == 1; })), ElementsAre(1));
  EXPECT_THAT(PackedInputs(*PackConstants(dag, Any)), ElementsAre(0, 1));
  EXPECT_EQ(WorkloadId(*PlainInputs(PackConstants(dag, Any))), WorkloadId(*dag));
}

TEST(PackConstantsTest, PacksConstantsThatOneReductionAloneReads) {
  const DagPtr twice = Text(std::string(kProduct) + "z[i: 4, j: 4] = y[i, j] + w[i, j]\n");
  EXPECT_THAT(PackedInputs(*PackConstants(twice, Any)), ElementsAre(0));
  const DagPtr no_sum = Text("input x: float32[4]\ninput w: float32[4]\ny[i: 4] = x[i] + w[i]\n");
  EXPECT_EQ(PackConstants(no_sum, Any), no_sum);
}

// Tests weights with and without TVM's mark.
TEST(PackConstantsTest, WeightsOfAllConvolutions) {
  for (const auto& [op, args] : {std::pair("conv2d_nhwc", "1,4,4,4,4,3,3,1,1"),
                                 std::pair("conv2d_nchw", "1,4,4,4,4,3,3,1,1"),
                                 std::pair("conv2d_nchw", "1,4,4,4,4,3,3,1,1,groups=2"),
                                 std::pair("conv1d_ncw", "1,8,4,4,3,1,1"),
                                 std::pair("conv3d_ncdhw", "1,4,4,4,2,2,3,3,3,1,1"),
                                 std::pair("depthwise_conv2d_nchw", "1,4,4,4,3,3,1,1"),
                                 std::pair("depthwise_conv2d_nhwc", "1,4,4,4,3,3,1,1")}) {
    ASSERT_OK_AND_ASSIGN(const DagPtr dag, BuildOp(op, args));
    const DagPtr packed = PackConstants(dag, Any);
    ASSERT_EQ(PackedInputs(*packed).size(), 1u) << PrintDag(*packed);
    EXPECT_EQ(packed->op(PackedInputs(*packed)[0]).name(), "p1") << op;
  }
  // PackInputs gives the same result if there are marks.
  ASSERT_OK_AND_ASSIGN(const DagPtr marked, BuildOp("conv2d_nhwc", "1,4,4,4,4,3,3,1,1"));
  EXPECT_EQ(WorkloadId(*PackConstants(marked, Any)), WorkloadId(*PackInputs(marked, Any)));
}

}  // namespace
}  // namespace kiln::dag
