#include "compiler/dag/online_variant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/status_testing.h"
#include "compiler/dag/evaluate.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"

namespace kiln::dag {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

DagPtr Attention(const std::string& args, ir::Type type = ir::kFloat16) {
  StatusOr<DagPtr> dag = BuildOp("attention", args, {.dtype = type});
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  return *std::move(dag);
}

ir::NDArray Output(const Dag& dag, const std::vector<ir::NDArray>& inputs) {
  StatusOr<std::vector<ir::NDArray>> outputs = Evaluate(dag, inputs, {.wide_accumulation = true});
  KILN_CHECK(outputs.ok(), "{}", Message(outputs.status()));
  return outputs->front();
}

// A softmax whose weights are divided before the product with the values.
constexpr char kDividedBefore[] = R"(
input Q: float16[6, 4]
input K: float16[6, 4]
input V: float16[6, 3]
S[i: 6, j: 6] = sum(k: 4) float32(Q[i, k])*float32(K[j, k])
X[i: 6, j: 6] = if(j > i, -inf, S[i, j])
M[i: 6] = max(j: 6) X[i, j]
P[i: 6, j: 6] = exp(X[i, j] - M[i])
L[i: 6] = sum(j: 6) P[i, j]
W[i: 6, j: 6] = float16(P[i, j]/L[i])
O[d: 3, i: 6] = sum(n: 6) float32(W[i, n])*float32(V[n, d])
out[i: 6, d: 3] = float16(max(O[d, i], 0.0))
)";

TEST(OnlineVariant, ComputesTheSameOfFiniteValues) {
  ASSERT_OK_AND_ASSIGN(const DagPtr divided_before, ParseDag(kDividedBefore));
  for (const DagPtr& dag :
       {Attention("2,9,4"), Attention("1,1,4"), Attention("2,9,4,causal=1,mask=1,values=3"),
        Attention("2,7,4,causal=1", ir::kFloat32), divided_before}) {
    SCOPED_TRACE(PrintDag(*dag));
    ASSERT_OK_AND_ASSIGN(const DagPtr variant, OnlineVariant(*dag));
    const std::vector<ir::NDArray> inputs = RandomInputs(*dag, 1);
    EXPECT_OK(ir::Compare(Output(*variant, inputs), Output(*dag, inputs), {1e-2, 1e-2}));
  }
}

TEST(OnlineVariant, LeavesOutWhatACausalMaskHides) {
  ASSERT_OK_AND_ASSIGN(const DagPtr divided_before, ParseDag(kDividedBefore));
  for (const DagPtr& dag : {Attention("1,6,3,causal=1"), divided_before}) {
    SCOPED_TRACE(PrintDag(*dag));
    ASSERT_OK_AND_ASSIGN(const DagPtr variant, OnlineVariant(*dag));
    std::vector<ir::NDArray> inputs = RandomInputs(*dag, 1);
    // The element of key 4 and column 1.
    inputs[2].SetDouble(3 * 4 + 1, kInfinity);
    const ir::NDArray whole = Output(*dag, inputs), online = Output(*variant, inputs);
    for (int64_t row = 0; row < 6; ++row) {
      const double of_whole = whole.GetDouble(3 * row + 1),
                   of_online = online.GetDouble(3 * row + 1);
      EXPECT_EQ(std::isnan(of_whole), row < 4) << row;
      EXPECT_EQ(std::isfinite(of_online), row < 4) << row;
      EXPECT_EQ(of_online == kInfinity, row >= 4) << row;
    }
  }
}

// A NaN that a row sees stays.
TEST(OnlineVariant, KeepsWhatIsSeen) {
  const DagPtr dag = Attention("1,6,3,causal=1");
  ASSERT_OK_AND_ASSIGN(const DagPtr variant, OnlineVariant(*dag));
  std::vector<ir::NDArray> inputs = RandomInputs(*dag, 1);
  inputs[2].SetDouble(0, std::nan(""));
  const ir::NDArray online = Output(*variant, inputs);
  for (int64_t row = 0; row < 6; ++row) EXPECT_TRUE(std::isnan(online.GetDouble(3 * row))) << row;
}

TEST(OnlineVariant, DoesNotRoundWeightsToZero) {
  const DagPtr dag = Attention("1,3,1");
  ASSERT_OK_AND_ASSIGN(const DagPtr variant, OnlineVariant(*dag));
  std::vector<ir::NDArray> inputs = RandomInputs(*dag, 1);
  inputs[0].Fill(1);
  // exp(-30) is 0 in float16.
  const double keys[] = {0, 30, 1}, values[] = {kInfinity, 2, 3};
  inputs[1] = ir::NDArray(ir::kFloat16, {1, 3, 1}, keys);
  inputs[2] = ir::NDArray(ir::kFloat16, {1, 3, 1}, values);
  EXPECT_TRUE(std::isnan(Output(*dag, inputs).GetDouble(0)));
  EXPECT_EQ(Output(*variant, inputs).GetDouble(0), kInfinity);
}

TEST(OnlineVariant, OfOtherComputations) {
  ASSERT_OK_AND_ASSIGN(const DagPtr dag, BuildOp("softmax", "4,8", {}));
  EXPECT_THAT(OnlineVariant(*dag),
              StatusIs(StatusCode::kNotFound, testing::HasSubstr("no product of a softmax")));
}

TEST(TakeVariantOfNaN, WhereOnlyTheExpectedIsNaN) {
  const double nan = std::nan("");
  const double found[] = {1, nan, 3, 4}, variant[] = {5, 6, 7, 8}, expected[] = {nan, nan, 9, nan};
  ir::NDArray taken(ir::kFloat32, {4}, expected);
  EXPECT_EQ(TakeVariantOfNaN({ir::kFloat32, {4}, found}, {ir::kFloat32, {4}, variant}, taken), 2);
  EXPECT_EQ(taken.GetDouble(0), 5);
  EXPECT_TRUE(std::isnan(taken.GetDouble(1)));
  EXPECT_EQ(taken.GetDouble(2), 9);
  EXPECT_EQ(taken.GetDouble(3), 8);
}

}  // namespace
}  // namespace kiln::dag
