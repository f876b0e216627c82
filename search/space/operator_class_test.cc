#include "search/space/operator_class.h"

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"

namespace kiln::search {
namespace {

// The kinds of all operators, in order.
std::vector<OperatorClass> ClassesOf(std::string_view text) {
  const auto dag = dag::ParseDag(text);
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  const dag::AccessAnalysis analysis(**dag);
  std::vector<OperatorClass> kinds;
  for (int i = 0; i < (*dag)->size(); ++i) kinds.push_back(ClassOf(**dag, analysis, i));
  return kinds;
}

OperatorClass ClassOfOp(const std::string& op, const std::string& args) {
  const auto dag = dag::BuildOp(op, args);
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  return ClassOf(**dag);
}

TEST(OperatorClass, ReductionsThatReuseElementsAreComplex) {
  EXPECT_THAT(
      ClassesOf(R"(
    input a: float32[8, 4]
    input b: float32[4, 8]
    product[i: 8, j: 8] = sum(k: 4) a[i, k] * b[k, j]
    rows[i: 8] = sum(j: 8) product[i, j]
  )"),
      testing::ElementsAre(OperatorClass::kPlaceholder, OperatorClass::kPlaceholder,
                           OperatorClass::kComplexReduction, OperatorClass::kSimpleReduction));
}

// The padding has conditions, the exponential is dear: their readers would compute them again.
TEST(OperatorClass, WhatIsDearToComputeAgainHasAPlace) {
  EXPECT_THAT(ClassesOf(R"(
    input x: float32[8]
    padded[i: 10] = if(i >= 1 && i < 9, x[i - 1], 0.0)
    summed[i: 8] = sum(r: 3) padded[i + r]
    twice[i: 8] = summed[i] * 2.0
    grown[i: 8] = exp(twice[i])
    last[i: 8] = grown[i] + 1.0
  )"),
              testing::ElementsAre(OperatorClass::kPlaceholder, OperatorClass::kLocationTunable,
                                   OperatorClass::kSimpleReduction, OperatorClass::kDirectCompute,
                                   OperatorClass::kLocationTunable, OperatorClass::kDirectCompute));
}

// It is written where it is wanted: there is no other place for it.
TEST(OperatorClass, AnOutputIsDirect) {
  EXPECT_THAT(ClassesOf(R"(
    input x: float32[8]
    padded[i: 10] = if(i >= 1 && i < 9, x[i - 1], 0.0)
  )"),
              testing::ElementsAre(OperatorClass::kPlaceholder, OperatorClass::kDirectCompute));
}

TEST(OperatorClass, AComputationIsWhatMostOfItsTermsAre) {
  EXPECT_EQ(ClassOfOp("conv2d_nhwc", "1,8,8,8,8,3,3,1,1"), OperatorClass::kComplexReduction);
  EXPECT_EQ(ClassOfOp("matmul", "8,8,8"), OperatorClass::kComplexReduction);
  EXPECT_EQ(ClassOfOp("softmax", "8,16"), OperatorClass::kSimpleReduction);
  EXPECT_EQ(ClassOfOp("max_pool2d_nhwc", "1,8,8,8,2,2,2,0"), OperatorClass::kSimpleReduction);
  EXPECT_EQ(ClassOfOp("relu", "8,16"), OperatorClass::kDirectCompute);
  EXPECT_EQ(ClassOfOp("transpose", "8,16"), OperatorClass::kDirectCompute);
}

TEST(OperatorClass, EachHasAName) {
  for (const OperatorClass kind : {OperatorClass::kPlaceholder, OperatorClass::kComplexReduction,
                                   OperatorClass::kSimpleReduction, OperatorClass::kDirectCompute,
                                   OperatorClass::kLocationTunable})
    EXPECT_NE(OperatorClassName(kind), "");
}

}  // namespace
}  // namespace kiln::search
