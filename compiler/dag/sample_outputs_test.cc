#include "compiler/dag/sample_outputs.h"

#include <set>

#include "base/status_testing.h"
#include "compiler/dag/evaluate.h"
#include "compiler/dag/input_facts.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"

namespace kiln::dag {
namespace {

using ir::NDArray;
using testing::HasSubstr;

// Returns the position in the output of an element of a grid.
std::vector<int64_t> PlaceOf(const OutputGrid& grid, std::vector<int64_t> at) {
  for (size_t d = 0; d < at.size(); ++d) at[d] = grid.offset[d] + grid.stride[d] * at[d];
  return at;
}

// Checks on random inputs that the sample has exactly the elements of the whole computation.
void ExpectElementsOf(const Dag& whole, const SampledDag& sampled) {
  const std::vector<NDArray> inputs = RandomInputs(whole, 5);
  ASSERT_OK_AND_ASSIGN(const std::vector<NDArray> all, Evaluate(whole, inputs));
  ASSERT_OK_AND_ASSIGN(const std::vector<NDArray> some, Evaluate(*sampled.text.dag, inputs));
  ASSERT_EQ(some.size(), sampled.grids.size());
  for (size_t k = 0; k < some.size(); ++k) {
    const OutputGrid& grid = sampled.grids[k];
    ASSERT_EQ(some[k].shape(), grid.count);
    for (int64_t i = 0; i < some[k].num_elements(); ++i) {
      const int64_t place = all[grid.output].Flatten(PlaceOf(grid, some[k].Unflatten(i)));
      ASSERT_GE(place, 0);
      const double got = some[k].GetDouble(i), want = all[grid.output].GetDouble(place);
      ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want)))
          << "grid " << k << " element " << i << ": " << got << ", expected " << want;
    }
  }
}

SampleOptions Small(uint64_t seed) {
  return {.grid_elements = 24, .most_flops = 1e18, .seed = seed};
}

class SampleOfOpTest : public testing::TestWithParam<OpCase> {};

TEST_P(SampleOfOpTest, HasTheElementsOfTheWhole) {
  const DagPtr dag = GetParam().Build();
  for (const uint64_t seed : {1, 2, 3}) {
    ASSERT_OK_AND_ASSIGN(const SampledDag sampled, SampleOutputs({dag, {}}, Small(seed)));
    ExpectElementsOf(*dag, sampled);
    // A builder gets the sample as text.
    ASSERT_OK_AND_ASSIGN(const DagPtr parsed, ParseDag(PrintDag(*sampled.text.dag)));
    EXPECT_TRUE(Equal(*parsed, *sampled.text.dag));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SampleOfOpTest, testing::ValuesIn(SmallOpCases()));

StatusOr<SampledDag> SampleOf(std::string_view text, const SampleOptions& options) {
  KILN_ASSIGN_OR_RETURN(const DagText whole, ParseDagText(text));
  return SampleOutputs(whole, options);
}

TEST(SampleOutputs, Attention) {
  ASSERT_OK_AND_ASSIGN(const DagPtr dag, ParseDag(R"(
input q: float32[2, 11, 8]
input key: float32[2, 13, 8]
input value: float32[2, 13, 6]
score[h: 2, i: 11, j: 13] = sum(d: 8) q[h, i, d] * key[h, j, d]
top[h: 2, i: 11] = max(j: 13) score[h, i, j]
e[h: 2, i: 11, j: 13] = exp(score[h, i, j] - top[h, i])
total[h: 2, i: 11] = sum(j: 13) e[h, i, j]
out[h: 2, i: 11, d: 6] = sum(j: 13) e[h, i, j] / total[h, i] * value[h, j, d]
)"));
  ASSERT_OK_AND_ASSIGN(const SampledDag sampled, SampleOutputs({dag, {}}, Small(1)));
  ExpectElementsOf(*dag, sampled);
}

TEST(SampleOutputs, TwoOutputsAndInputsInAnyOrder) {
  ASSERT_OK_AND_ASSIGN(const DagPtr dag, ParseDag(R"(@keep_order
input b: float32[7]
input a: float32[9, 7]
s[i: 9] = sum(k: 7) a[i, k] * b[k]
t[k: 7, i: 9] = a[i, k] + b[k]
)"));
  ASSERT_OK_AND_ASSIGN(const SampledDag sampled, SampleOutputs({dag, {}}, Small(4)));
  ExpectElementsOf(*dag, sampled);
  EXPECT_EQ(sampled.text.dag->op(0).name(), "b");
  std::set<int> outputs;
  for (const OutputGrid& grid : sampled.grids) outputs.insert(grid.output);
  EXPECT_EQ(outputs, (std::set{0, 1}));
}

TEST(SampleOutputs, OfALargeOneItTakesWhatItMay) {
  ASSERT_OK_AND_ASSIGN(const DagPtr dag, BuildOp("matmul", "4096,4096,4096"));
  EXPECT_NEAR(PlainSeconds(*dag, 1e9), 137, 1);
  EXPECT_NEAR(PlainSeconds(*dag, 1e12), 0.137, 0.001);
  ASSERT_OK_AND_ASSIGN(const SampledDag sampled, SampleOutputs({dag, {}}, {}));
  EXPECT_LE(sampled.text.dag->flop_count(), 2e8);
  EXPECT_GE(sampled.elements(), 8192);
  ASSERT_EQ(sampled.grids.size(), 5u);
  // The grids have every dimension's ends, and all corners.
  for (const int dimension : {0, 1}) {
    std::set<int64_t> places;
    for (const OutputGrid& grid : sampled.grids) {
      for (int64_t i = 0; i < grid.count[dimension]; ++i) {
        places.insert(grid.offset[dimension] + grid.stride[dimension] * i);
      }
    }
    EXPECT_TRUE(places.contains(0) && places.contains(4095));
    EXPECT_EQ(*places.rbegin(), 4095);
    EXPECT_GT(places.size(), 100u);
  }
  EXPECT_EQ(sampled.grids[0].elements(), 4);
  EXPECT_EQ(sampled.grids[1].stride, (std::vector<int64_t>{63, 63}));
  ASSERT_OK_AND_ASSIGN(const SampledDag other, SampleOutputs({dag, {}}, {.seed = 1}));
  EXPECT_NE(other.grids[1].offset, sampled.grids[1].offset);
}

TEST(SampleOutputs, FewerElementsWhereEachIsDear) {
  ASSERT_OK_AND_ASSIGN(const DagPtr dag, BuildOp("matmul", "64,64,1000000"));
  ASSERT_OK_AND_ASSIGN(const SampledDag sampled, SampleOutputs({dag, {}}, {.most_flops = 1e9}));
  EXPECT_LE(sampled.text.dag->flop_count(), 1e9);
  EXPECT_GE(sampled.elements(), 50);
}

TEST(SampleOutputs, RefusesWhatIsNotCheaper) {
  EXPECT_THAT(
      SampleOf("input a: float32[1000000]\ns[] = sum(k: 1000000) a[k]\n", {.most_flops = 1e5}),
      StatusIs(StatusCode::kInvalidArgument, HasSubstr("operations, all of them")));
  // The computation has 2^20 different paths.
  std::string text = "input x0: float32[100]\n";
  for (int i = 0; i < 20; ++i) {
    text += fmt::format("x{}[i: 100] = max(k: 3) x{}[max(i - k, 0)] + x{}[min(i + {}, 99)]\n",
                        i + 1, i, i, i);
  }
  EXPECT_THAT(SampleOf(text, {}), StatusIs(StatusCode::kInvalidArgument, testing::_));
}

TEST(SampleOutputs, AChainThatReadsItselfTwiceIsNotRepeated) {
  std::string text = "input x0: float32[100]\n";
  for (int i = 0; i < 40; ++i) {
    text += fmt::format("x{}[i: 100] = x{}[i] * x{}[i]\n", i + 1, i, i);
  }
  ASSERT_OK_AND_ASSIGN(const SampledDag sampled, SampleOf(text, {.most_flops = 1e18}));
  EXPECT_LE(sampled.text.dag->size(), 10);
}

TEST(SampleOutputs, HasTheRangesOfTheInputs) {
  const std::string text =
      "@range(0.5, 2.0)\ninput x: float32[64, 512]\ninput w: float32[64, 512]\n"
      "A[t: 64, n: 64] = sum(k: 512) log(x[t, k]) * w[n, k]\n";
  ASSERT_OK_AND_ASSIGN(const DagText whole, ParseDagText(text));
  ASSERT_OK_AND_ASSIGN(const SampledDag sampled, SampleOutputs(whole, Small(1)));
  EXPECT_THAT(sampled.text.ranges, testing::ElementsAre(InputRange{"x", 0.5, 2}));
  EXPECT_EQ(InputsOf(sampled.text), InputsOf(whole));
  ASSERT_OK_AND_ASSIGN(const DagText parsed,
                       ParseDagText(PrintDag(*sampled.text.dag, sampled.text.ranges)));
  EXPECT_EQ(InputsOf(parsed), InputsOf(whole));
}

TEST(SampleOutputs, HasTheIndexLimitsOfTheInputs) {
  // If the indices were read from the slice itself, they would lie below 16 instead of 8.
  for (const std::string_view slice :
       {"W[v, d]", "W[v + 8, d]", "W[min(v, 5), d]", "W[v // 2, d]"}) {
    const std::string text = fmt::format(
        "input W: float32[16, 4]\ninput ids: int32[32]\nT[v: 8, d: 4] = {}\n"
        "Y[i: 32, d: 4] = T[ids[i], d] * 2.0\n",
        slice);
    ASSERT_OK_AND_ASSIGN(const DagText whole, ParseDagText(text));
    ASSERT_OK_AND_ASSIGN(const SampledDag sampled, SampleOutputs(whole, Small(1)));
    EXPECT_EQ(InputsOf(sampled.text), InputsOf(whole)) << text;
    ExpectElementsOf(*whole.dag, sampled);
  }
}

TEST(SampleOutputs, ReadsElementsOfAReductionAtIndicesOfAnInput) {
  ASSERT_OK_AND_ASSIGN(const DagText whole, ParseDagText(R"(
input W: float32[16, 4]
input ids: int32[32]
T[v: 16] = sum(d: 4) W[v, d]
Y[i: 32] = T[ids[i]] + 1.0
)"));
  ASSERT_OK_AND_ASSIGN(const SampledDag sampled, SampleOutputs(whole, Small(1)));
  EXPECT_EQ(InputsOf(sampled.text), InputsOf(whole));
  ExpectElementsOf(*whole.dag, sampled);
}

TEST(SampleOutputs, RefusesInputsThatWouldHaveOtherNames) {
  // An operator that has an input's name comes before it, so that the input is called A'1.
  EXPECT_THAT(SampleOf("input b: float32[64]\nA[i: 64] = b[i] * 2.0\ninput A'1: float32[64]\n"
                       "Y[i: 64] = sum(k: 64) A[k] * A'1[i]\n",
                       Small(1)),
              testing::AnyOf(StatusIs(StatusCode::kInvalidArgument, HasSubstr("its input 1 is")),
                             testing::ResultOf([](const auto& s) { return s.ok(); }, true)));
}

}  // namespace
}  // namespace kiln::dag
