#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "graph/run_op_testing.h"

namespace kiln::graph {
namespace {

using ir::NDArray;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// Returns an array of 1, 2, 3, ...
NDArray Counting(std::vector<int64_t> shape, ir::Type type = ir::kInt32) {
  NDArray array(type, std::move(shape));
  for (int64_t i = 0; i < array.num_elements(); ++i) array.SetDouble(i, static_cast<double>(i + 1));
  return array;
}

TEST(ReshapeTest, KeepsTheOrderOfElements) {
  struct Case {
    std::vector<int64_t> from, to;
  };
  const Case cases[] = {
      {{2, 3, 4}, {6, 4}},
      {{2, 3, 4}, {2, 12}},
      {{24}, {2, 3, 4}},
      {{2, 3, 4}, {4, 3, 2}},
      {{4, 6, 5}, {8, 3, 5}},
      {{1, 2, 1, 3}, {2, 3, 1, 1}},
      {{2, 3}, {1, 2, 1, 3, 1}},
      {{1}, {}},
      {{}, {1, 1}},
      {{}, {}},
      {{2, 2, 2, 2, 2, 2, 2, 2}, {16, 1, 16}},
      {{1, 12, 1, 64}, {12, 8, 8}},
  };
  for (const Case& c : cases) {
    const NDArray x = Counting(c.from, ir::kInt64);
    const NDArray y = RunOp(fmt::format("reshape(a) {{shape: [{}]}}", fmt::join(c.to, ", ")), {x});
    EXPECT_EQ(y.shape(), c.to);
    EXPECT_EQ(Doubles(y), Doubles(x));
  }
}

TEST(ReshapeTest, AxesThatStayHaveSimpleIndices) {
  // Without a split axis the indices have no divisions and remainders.
  const dag::DagPtr dag =
      DagOf("reshape(a) {shape: [8, 768, 4]}", {{ir::kFloat32, {8, 768, 4, 1}}});
  const dag::Operator& op = dag->op(dag->size() - 1);
  ASSERT_EQ(op.properties().reads.size(), 1u);
  for (ir::Expr index : op.properties().reads[0].load->args())
    EXPECT_TRUE(index->op == ir::Op::kVar || index->is_const_int(0));
}

TEST(TransposeTest, Axes) {
  const NDArray x = Counting({2, 3, 4});
  EXPECT_EQ(RunOp("transpose(a)", {x}), Permuted(x, {2, 1, 0}));
  EXPECT_EQ(RunOp("transpose(a) {axes: [0, -1, 1]}", {x}), Permuted(x, {0, 2, 1}));
  const NDArray bytes = Counting({2, 3}, ir::kInt8);
  EXPECT_EQ(RunOp("transpose(a)", {bytes}), Permuted(bytes, {1, 0}));
  const NDArray scalar = Counting({});
  EXPECT_EQ(RunOp("transpose(a)", {scalar}), scalar);
}

TEST(ConcatTest, AlongAnyAxis) {
  const NDArray a = Counting({2, 1}), b = Counting({2, 2}), c = Counting({2, 1});
  EXPECT_THAT(Doubles(RunOp("concat(a, b, c) {axis: -1}", {a, b, c})),
              ElementsAre(1, 1, 2, 1, 2, 3, 4, 2));
  EXPECT_THAT(Doubles(RunOp("concat(a, b) {axis: 0}", {a, c})), ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(Doubles(RunOp("concat(a, a) {axis: 0}", {a})), ElementsAre(1, 2, 1, 2));
  EXPECT_EQ(RunOp("concat(a) {axis: 0}", {b}), b);
  const NDArray flags = Array(ir::kBool, {2}, {1, 0});
  EXPECT_THAT(Doubles(RunOp("concat(a, a) {axis: 0}", {flags})), ElementsAre(1, 0, 1, 0));
}

TEST(SplitTest, AnOutputForEachPart) {
  const NDArray x = Counting({2, 4});
  const StatusOr<std::vector<NDArray>> parts = TryOp("split(a) {axis: 1, sizes: [1, 3]}", {x}, 2);
  ASSERT_OK(parts);
  EXPECT_EQ((*parts)[0], Array(ir::kInt32, {2, 1}, {1, 5}));
  EXPECT_EQ((*parts)[1], Array(ir::kInt32, {2, 3}, {2, 3, 4, 6, 7, 8}));
}

TEST(SliceTest, StridesOfBothSigns) {
  const NDArray x = Counting({3, 5});
  EXPECT_EQ(RunOp("slice(a) {begin: [1, 2], extents: [2, 3]}", {x}),
            Array(ir::kInt32, {2, 3}, {8, 9, 10, 13, 14, 15}));
  EXPECT_EQ(RunOp("slice(a) {begin: [2, 4], extents: [2, 3], strides: [-2, -2]}", {x}),
            Array(ir::kInt32, {2, 3}, {15, 13, 11, 5, 3, 1}));
  // An axis with a single element may have any step.
  EXPECT_EQ(RunOp("slice(a) {begin: [2, 0], extents: [1, 5], strides: [1000000, 1]}", {x}),
            Array(ir::kInt32, {1, 5}, {11, 12, 13, 14, 15}));
  const NDArray scalar = Counting({});
  EXPECT_EQ(RunOp("slice(a) {begin: [], extents: []}", {scalar}), scalar);
}

// Returns numpy's result for one axis, whose elements are cut off first.
std::vector<double> Padded(std::vector<double> x, int64_t before, int64_t after,
                           std::string_view mode, double value) {
  if (before < 0) x.erase(x.begin(), x.begin() - before);
  if (after < 0) x.erase(x.end() + after, x.end());
  before = std::max<int64_t>(before, 0);
  after = std::max<int64_t>(after, 0);
  const int64_t n = std::ssize(x);
  std::vector<double> y;
  for (int64_t i = -before; i < n + after; ++i) {
    int64_t at = i;
    if (mode == "edge") at = std::clamp<int64_t>(i, 0, n - 1);
    if (mode == "wrap") at = ((i % n) + n) % n;
    while (mode == "reflect" && (at < 0 || at >= n))
      at = n == 1 ? 0 : at < 0 ? -at : 2 * (n - 1) - at;
    y.push_back(at < 0 || at >= n ? value : x[static_cast<size_t>(at)]);
  }
  return y;
}

TEST(PadTest, MatchesLoopsInEveryMode) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 rng(seed);
    const int64_t n = 1 + static_cast<int64_t>(rng() % 6);
    const auto amount = [&](int64_t most) {
      return -most + static_cast<int64_t>(rng() % static_cast<uint64_t>(9 + most));
    };
    const int64_t before = amount((n - 1) / 2), after = amount((n - 1) / 2);
    const NDArray x = Counting({n});
    for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
      EXPECT_THAT(Doubles(RunOp(fmt::format("pad(a) {{before: [{}], after: [{}], mode: {}, value: "
                                            "-7}}",
                                            before, after, mode),
                                {x})),
                  ElementsAreArray(Padded(Doubles(x), before, after, mode, -7)))
          << mode << " " << n << " " << before << " " << after;
    }
  }
}

TEST(PadTest, SeveralAxes) {
  const NDArray x = Counting({2, 2});
  EXPECT_EQ(RunOp("pad(a) {before: [1, 0], after: [0, 1]}", {x}),
            Array(ir::kInt32, {3, 3}, {0, 0, 0, 1, 2, 0, 3, 4, 0}));
  EXPECT_EQ(RunOp("pad(a) {before: [-1, 1], after: [0, 1], mode: reflect}", {x}),
            Array(ir::kInt32, {1, 4}, {4, 3, 4, 3}));
  const NDArray flags = Array(ir::kBool, {1}, {0});
  EXPECT_EQ(RunOp("pad(a) {before: [1], after: [0], value: 0.5}", {flags}),
            Array(ir::kBool, {2}, {1, 0}));
}

TEST(BroadcastTest, AsNumpy) {
  const NDArray x = Counting({2, 1});
  EXPECT_EQ(RunOp("broadcast_to(a) {shape: [2, 2, 3]}", {x}),
            Array(ir::kInt32, {2, 2, 3}, {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(RunOp("broadcast_to(a) {shape: [2]}", {Counting({})}), Array(ir::kInt32, {2}, {1, 1}));
  EXPECT_EQ(RunOp("tile(a) {repeats: [1, 2]}", {Counting({2, 2})}),
            Array(ir::kInt32, {2, 4}, {1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(RunOp("tile(a) {repeats: [2]}", {Counting({2})}), Array(ir::kInt32, {4}, {1, 2, 1, 2}));
}

TEST(TriangleTest, UpperAndLower) {
  const NDArray x = Counting({2, 3});
  EXPECT_THAT(Doubles(RunOp("triangle(a)", {x})), ElementsAre(1, 0, 0, 4, 5, 0));
  EXPECT_THAT(Doubles(RunOp("triangle(a) {offset: 1}", {x})), ElementsAre(1, 2, 0, 4, 5, 6));
  EXPECT_THAT(Doubles(RunOp("triangle(a) {upper: 1}", {x})), ElementsAre(1, 2, 3, 0, 5, 6));
  EXPECT_THAT(Doubles(RunOp("triangle(a) {upper: 1, offset: -1}", {x})),
              ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Doubles(RunOp("triangle(a) {offset: -9223372036854775808}", {x})),
              ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Doubles(RunOp("triangle(a) {upper: 1}", {Array(ir::kBool, {1, 2, 2}, {1, 1, 1, 1})})),
              ElementsAre(1, 1, 0, 1));
}

TEST(RearrangementTest, Refuses) {
  const NDArray x = Counting({2, 3}), other = Counting({2, 2}), scalar = Counting({}),
                float_x = Counting({2, 3}, ir::kFloat32);
  struct Refused {
    std::string_view call;
    std::vector<NDArray> inputs;
    std::string_view message;
  };
  const Refused cases[] = {
      {"reshape(a) {shape: [4, 2]}", {x}, "[2, 3] has 6 elements, which do not fit shape = [4, 2]"},
      {"reshape(a) {shape: [-2, -3]}", {x}, "do not fit"},
      {"reshape(a) {shape: [4294967296, 4294967296]}", {x}, "do not fit"},
      {"transpose(a) {axes: [0]}", {x}, "axes = [0], expected all 2 of the input"},
      {"transpose(a) {axes: [0, 0]}", {x}, "axes names axis 0 twice"},
      {"transpose(a) {axes: [0, 5]}", {x}, "axes = 5"},
      {"concat(a, b) {axis: 0}", {x, other}, "differ elsewhere than along axis 0"},
      {"concat(a, b) {axis: 0}", {x, scalar}, "differ elsewhere"},
      {"concat(a, b) {axis: 0}", {x, float_x}, "inputs of int32 and float32"},
      {"concat(a, b) {axis: 2}", {x, other}, "axis = 2"},
      {"split(a) {axis: 1, sizes: [1, 1]}", {x}, "are not the parts of an axis with extent 3"},
      {"split(a) {axis: 1, sizes: [4, -1]}", {x}, "are not the parts"},
      {"split(a) {axis: 1, sizes: []}", {x}, "are not the parts"},
      {"slice(a) {begin: [0], extents: [1]}", {x}, "begin has 1 entries, expected 2"},
      {"slice(a) {begin: [0, 0], extents: [0, 1]}", {x}, "extents = 0, expected 1 to"},
      {"slice(a) {begin: [0, 0], extents: [3, 1]}",
       {x},
       "3 elements from 0 on in steps of 1 are not all in axis 0 with extent 2"},
      {"slice(a) {begin: [0, 3], extents: [1, 1]}", {x}, "are not all in axis 1"},
      {"slice(a) {begin: [0, 0], extents: [1, 2], strides: [1, 0]}", {x}, "steps of 0"},
      {"slice(a) {begin: [0, 0], extents: [1, 2], strides: [1, -9223372036854775808]}",
       {x},
       "strides = -9223372036854775808, expected"},
      {"pad(a) {before: [0, 0], after: [0]}", {x}, "after has 1 entries, expected 2"},
      {"pad(a) {before: [-1, 0], after: [-1, 0]}", {x}, "2 elements are cut off axis 0 with 2"},
      {"pad(a) {before: [0, 0], after: [0, 0], mode: mirror}",
       {x},
       "mode = mirror, expected one of constant, reflect, edge, wrap"},
      {"pad(a) {before: [0, 0], after: [0, 0], value: 0.5}", {x}, "value = 0.5 is no int32"},
      {"pad(a) {before: [0, 0], after: [0, 0], value: nan}", {x}, "value = nan is no int32"},
      {"pad(a) {before: [9223372036854775807, 0], after: [0, 0]}", {x}, "expected -2147483648 to"},
      {"broadcast_to(a) {shape: [2, 2]}", {x}, "[2, 3] does not broadcast to shape = [2, 2]"},
      {"broadcast_to(a) {shape: [3]}", {x}, "does not broadcast"},
      {"broadcast_to(a) {shape: [-5]}", {scalar}, "-5"},
      {"broadcast_to(a) {shape: [9223372036854775807, 2, 3]}", {x}, "9223372036854775807"},
      {"tile(a) {repeats: [0, 1]}", {x}, "repeats = 0, expected 1 to"},
      {"tile(a) {repeats: [2147483648, 2147483648]}", {x}, "elements"},
      {"triangle(a)", {scalar}, "input 0 has 0 dimensions, expected at least 2"},
  };
  for (const Refused& c : cases)
    EXPECT_THAT(RefusalOf(c.call, c.inputs), HasSubstr(c.message)) << c.call;
}

}  // namespace
}  // namespace kiln::graph
