#include "compiler/dag/merge_axes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/status_testing.h"
#include "compiler/dag/evaluate.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"

namespace kiln::dag {
namespace {

using testing::HasSubstr;

ir::NDArray As(const ir::NDArray& array, const std::vector<int64_t>& shape) {
  ir::NDArray other(array.type(), shape);
  std::ranges::copy(array.bytes(), other.mutable_bytes().begin());
  return other;
}

// Checks that the merged computation does the same to the same bytes.
void ExpectSame(const Dag& dag, const Dag& merged) {
  const auto inputs = RandomInputs(dag, 7, ir::RandomKind::kSmallIntegers);
  std::vector<ir::NDArray> as_merged;
  for (size_t i = 0; i < inputs.size(); ++i)
    as_merged.push_back(As(inputs[i], merged.shape(merged.arguments()[i])));
  ASSERT_OK_AND_ASSIGN(const auto want, Evaluate(dag, inputs));
  ASSERT_OK_AND_ASSIGN(const auto got, Evaluate(merged, as_merged));
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(As(got[i], want[i].shape()), want[i]);
}

int OpOf(const Dag& dag, std::string_view name) {
  for (int i = 0; i < dag.size(); ++i) {
    if (dag.op(i).name() == name) return i;
  }
  return -1;
}

DagPtr Dag1x1(std::string_view text = "") {
  auto dag = ParseDag(std::string(R"(input x: float32[2, 3, 5, 4]
input w: float32[1, 1, 4, 6]
conv[n: 2, h: 3, v: 5, o: 6] = sum(kh: 1, kw: 1, c: 4) x[n, h + kh, v + kw, c] * w[kh, kw, c, o]
)") + std::string(text));
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  return *dag;
}

TEST(MergeAxes, OfAPointwiseConvolution) {
  const DagPtr dag = Dag1x1(
      "input b: float32[6]\n"
      "add[n: 2, h: 3, v: 5, o: 6] = conv[n, h, v, o] + b[o]\n"
      "relu[n: 2, h: 3, v: 5, o: 6] = max(add[n, h, v, o], 0.0)\n");
  const int conv = OpOf(*dag, "conv"), x = OpOf(*dag, "x"), relu = OpOf(*dag, "relu");
  ASSERT_OK_AND_ASSIGN(const DagPtr merged, MergeAxes(*dag, conv, 0, 3));
  EXPECT_EQ(merged->op(x).shape(), (std::vector<int64_t>{30, 4}));
  EXPECT_EQ(merged->node(OpOf(*dag, "w")).op, dag->node(OpOf(*dag, "w")).op) << "the weights";
  EXPECT_EQ(merged->op(relu).shape(), (std::vector<int64_t>{30, 6}));
  EXPECT_EQ(merged->op(conv).axes()[0].name, "n_h_v");
  ExpectSame(*dag, *merged);
  ASSERT_OK_AND_ASSIGN(const DagPtr two, MergeAxes(*dag, OpOf(*dag, "add"), 1, 2));
  EXPECT_EQ(two->op(x).shape(), (std::vector<int64_t>{2, 15, 4}));
  ExpectSame(*dag, *two);
}

// An axis of length 1 is always 0, so a read along it alone stays as it is.
TEST(MergeAxes, OfOneImageWithABias) {
  for (const char* args : {"1,5,7,8,4,1,1,1,0", "3,5,7,8,4,1,1,1,0"}) {
    ASSERT_OK_AND_ASSIGN(const DagPtr dag,
                         BuildOp("conv2d_nhwc", args, {.epilogue = {"bias", "relu"}}));
    for (int op = 0; op < dag->size(); ++op) {
      if (!dag->op(op).is_reduction()) continue;
      ASSERT_OK_AND_ASSIGN(const DagPtr merged, MergeAxes(*dag, op, 0, 3));
      EXPECT_EQ(merged->op(op).axes().size(), 2u);
      ExpectSame(*dag, *merged);
    }
  }
}

TEST(MergeAxes, WhatReadsThemOneByOneIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"t[n: 2, v: 5, h: 3, o: 6] = conv[n, h, v, o]\n", "t reads conv along single axes"},
      {"t[n: 2, h: 3, v: 5, o: 6] = conv[n, h, v, o] + float32(h)\n",
       "depends on axis h by itself"},
      {"t[n: 2, h: 3, v: 5, o: 6] = conv[n, h, 4 - v, o]\n", "t reads conv along single axes"},
      {"t[n: 2, h: 2, v: 5, o: 6] = conv[n, h, v, o]\n", "t reads conv along single axes"},
      {"t[n: 2, o: 6] = sum(h: 3, v: 5) conv[n, h, v, o]\n", "t reads conv along single axes"},
      {"t[n: 2, h: 3, v: 5, o: 6] = conv[n, h, v, o] + x[n, 2 - h, v, 0]\n", "along single axes"}};
  for (const auto& [text, message] : cases) {
    SCOPED_TRACE(text);
    const DagPtr dag = Dag1x1(text);
    EXPECT_THAT(MergeAxes(*dag, OpOf(*dag, "conv"), 0, 3).status(),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)));
  }
  const DagPtr dag = Dag1x1();
  for (const auto& [first, count] : {std::pair(-1, 2), {0, 1}, {2, 3}, {4, 2}})
    EXPECT_FALSE(MergeAxes(*dag, OpOf(*dag, "conv"), first, count).ok()) << first << " " << count;
  EXPECT_FALSE(MergeAxes(*dag, OpOf(*dag, "conv"), 2, 2).ok())
      << "a column reads the weights alone";
}

// A window distinguishes the points of an image.
TEST(MergeAxes, NotOfAWindow) {
  ASSERT_OK_AND_ASSIGN(const DagPtr dag, BuildOp("conv2d_nhwc", "1,8,8,16,16,3,3,1,1", {}));
  int windows = 0;
  for (int op = 0; op < dag->size(); ++op) {
    if (!dag->op(op).is_reduction()) continue;
    ++windows;
    EXPECT_THAT(MergeAxes(*dag, op, 0, 3).status(),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("along single axes")));
  }
  EXPECT_EQ(windows, 1);
}

}  // namespace
}  // namespace kiln::dag
