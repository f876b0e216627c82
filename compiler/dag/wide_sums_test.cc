#include "compiler/dag/wide_sums.h"

#include <cmath>

#include "base/status_testing.h"
#include "compiler/dag/evaluate.h"
#include "compiler/dag/input_facts.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/dag/ops/registry.h"

namespace kiln::dag {
namespace {

using ir::NDArray;
using testing::HasSubstr;

constexpr char kMeanAndVariance[] = R"(@range(0.5, 2.0)
input x: float32[2, 8192]
mean[b: 2] = sum(k: 8192) x[b, k] * 0.0001220703125
variance[b: 2] = sum(k: 8192) (x[b, k] - mean[b]) * (x[b, k] - mean[b]) * 0.0001220703125
)";

double LargestError(const std::vector<NDArray>& got, const std::vector<NDArray>& want) {
  double worst = 0, largest = 0;
  for (size_t k = 0; k < got.size(); ++k) {
    for (int64_t i = 0; i < got[k].num_elements(); ++i) {
      worst = std::max(worst, std::fabs(got[k].GetDouble(i) - want[k].GetDouble(i)));
      largest = std::max(largest, std::fabs(want[k].GetDouble(i)));
    }
  }
  return worst / largest;
}

// Programs that add in order have this error.
TEST(WideSums, ShowTheErrorOfAddingInOrder) {
  ASSERT_OK_AND_ASSIGN(const DagText whole, ParseDagText(kMeanAndVariance));
  ASSERT_OK_AND_ASSIGN(const DagText wide, ParseDagText(ReferenceText(kMeanAndVariance)));
  EXPECT_EQ(CountWideSums(*whole.dag), 2);
  const std::vector<NDArray> inputs = RandomInputs(*whole.dag, 3);
  ASSERT_OK_AND_ASSIGN(const auto in_order, Evaluate(*whole.dag, inputs));
  ASSERT_OK_AND_ASSIGN(const auto want, Evaluate(*wide.dag, inputs));
  ASSERT_OK_AND_ASSIGN(const auto exact, Evaluate(*whole.dag, inputs, {.wide_accumulation = true}));
  EXPECT_GT(LargestError(in_order, want), 1e-7);
  EXPECT_LT(LargestError(exact, want), 1e-7);
}

TEST(WideSums, KeepInputsAndOutputs) {
  ASSERT_OK_AND_ASSIGN(const DagText whole, ParseDagText(kMeanAndVariance));
  ASSERT_OK_AND_ASSIGN(const DagText wide, ParseDagText(ReferenceText(kMeanAndVariance)));
  EXPECT_EQ(InputsOf(wide), InputsOf(whole));
  ASSERT_EQ(wide.dag->arguments().size(), whole.dag->arguments().size());
  for (size_t i = 0; i < whole.dag->arguments().size(); ++i) {
    const Tensor a = whole.dag->arguments()[i], b = wide.dag->arguments()[i];
    EXPECT_EQ(TensorName(*wide.dag, DisplayNames(*wide.dag), b),
              TensorName(*whole.dag, DisplayNames(*whole.dag), a));
    EXPECT_EQ(wide.dag->type(b), whole.dag->type(a));
    EXPECT_EQ(wide.dag->shape(b), whole.dag->shape(a));
  }
}

TEST(WideSums, AreThoseOfManyTermsInFloat32) {
  const auto count = [](std::string_view text) {
    const auto dag = ParseDag(text);
    return dag.ok() ? CountWideSums(**dag) : -1;
  };
  const auto sum = [](std::string_view type, int terms) {
    return fmt::format("input x: {}[{}]\ny[] = sum(k: {}) x[k]\n", type, terms, terms);
  };
  EXPECT_EQ(count(sum("float32", 64)), 1);
  EXPECT_EQ(count(sum("float32", 63)), 0);
  EXPECT_EQ(count(sum("float64", 64)), 0);
  EXPECT_EQ(count(sum("float16", 64)), 0);
  EXPECT_EQ(count(sum("int32", 64)), 0);
  EXPECT_EQ(count("input x: float32[64]\ny[] = max(k: 64) x[k]\n"), 0);
  // The factors of products of 16-bit floats that are added in float32 are exact.
  const std::string text =
      "input a: float16[4, 64]\ninput b: float16[64]\n"
      "y[i: 4] = sum(k: 64) float32(a[i, k]) * float32(b[k])\n";
  EXPECT_EQ(count(text), 1);
  EXPECT_THAT(ReferenceText(text), HasSubstr("float64"));
}

TEST(WideSums, WhatIsNoneStaysAsItIs) {
  for (const std::string text : {"no computation", "input x: float32[8]\ny[i: 8] = x[i] + 1.0\n"}) {
    EXPECT_EQ(ReferenceText(text), text);
  }
}

class WideSumsOfOpTest : public testing::TestWithParam<OpCase> {};

TEST_P(WideSumsOfOpTest, AreTheSumsCarriedWide) {
  const DagPtr dag = GetParam().Build();
  ASSERT_OK_AND_ASSIGN(const DagText wide, WithWideSums({dag, {}}));
  const std::vector<NDArray> inputs = RandomInputs(*dag, 5);
  ASSERT_OK_AND_ASSIGN(const auto want, Evaluate(*dag, inputs, {.wide_accumulation = true}));
  ASSERT_OK_AND_ASSIGN(const auto got, Evaluate(*wide.dag, inputs, {.wide_accumulation = true}));
  for (size_t k = 0; k < want.size(); ++k) {
    for (int64_t i = 0; i < want[k].num_elements(); ++i) {
      const double a = got[k].GetDouble(i), b = want[k].GetDouble(i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      ASSERT_NEAR(a, b, 1e-5 * (1 + std::fabs(b))) << "output " << k << " element " << i;
    }
  }
  ASSERT_OK_AND_ASSIGN(const DagPtr parsed, ParseDag(PrintDag(*wide.dag)));
  EXPECT_TRUE(Equal(*parsed, *wide.dag));
}

INSTANTIATE_TEST_SUITE_P(All, WideSumsOfOpTest, testing::ValuesIn(SmallOpCases()));

}  // namespace
}  // namespace kiln::dag
