#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "base/status_testing.h"
#include "graph/run_op_testing.h"

namespace kiln::graph {
namespace {

using ir::NDArray;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns the index in the result to which an element contributes.
Index Kept(const Index& index, const std::vector<bool>& reduced, bool keep_dims) {
  Index kept;
  for (size_t d = 0; d < index.size(); ++d) {
    if (!reduced[d]) kept.push_back(index[d]);
    if (reduced[d] && keep_dims) kept.push_back(0);
  }
  return kept;
}

// Returns the elements of x that make up each element of the result, in row-major order.
std::map<Index, std::vector<double>> Groups(const NDArray& x, const std::vector<bool>& reduced,
                                            bool keep_dims) {
  std::map<Index, std::vector<double>> groups;
  ForEachIndex(x.shape(), [&](const Index& index) {
    groups[Kept(index, reduced, keep_dims)].push_back(ElementAt(x, index));
  });
  return groups;
}

double Sum(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x;
  return sum;
}
double Product(const std::vector<double>& v) {
  double product = 1;
  for (double x : v) product *= x;
  return product;
}

TEST(ReductionTest, MatchLoopsOverRandomCases) {
  struct Reduction {
    std::string_view name;
    double (*of)(const std::vector<double>&);
  };
  const Reduction reductions[] = {
      {"reduce_sum", Sum},
      {"reduce_prod", Product},
      {"reduce_max", [](const std::vector<double>& v) { return *std::ranges::max_element(v); }},
      {"reduce_min", [](const std::vector<double>& v) { return *std::ranges::min_element(v); }},
      {"reduce_mean",
       [](const std::vector<double>& v) { return Sum(v) / static_cast<double>(v.size()); }},
  };
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 rng(seed);
    std::vector<int64_t> shape, axes;
    std::vector<bool> reduced;
    for (size_t rank = 1 + rng() % 4; shape.size() < rank;) {
      reduced.push_back(rng() % 2 == 0);
      if (reduced.back())
        axes.push_back(static_cast<int64_t>(shape.size()) -
                       (rng() % 2 == 0 ? static_cast<int64_t>(rank) : 0));
      shape.push_back(1 + static_cast<int64_t>(rng() % 4));
    }
    if (axes.empty()) reduced.assign(shape.size(), true);
    const bool keep_dims = rng() % 2 == 0;
    const ir::Type type = rng() % 2 == 0 ? ir::kFloat32 : ir::kInt64;
    const NDArray x = SmallIntegers(shape, seed, type);
    const auto groups = Groups(x, reduced, keep_dims);
    for (const Reduction& reduction : reductions) {
      const NDArray y = RunOp(fmt::format("{}(a) {{axes: [{}], keep_dims: {}}}", reduction.name,
                                          fmt::join(axes, ", "), keep_dims ? 1 : 0),
                              {x});
      ASSERT_EQ(y.type(), type);
      ASSERT_EQ(y.num_elements(), std::ssize(groups));
      for (const auto& [index, elements] : groups) {
        const double want = reduction.of(elements);
        EXPECT_NEAR(ElementAt(y, index), type.is_int() ? std::trunc(want) : want, 1e-6)
            << reduction.name;
      }
    }
  }
}

TEST(ReductionTest, ArgReductionsMatchLoopsOverRandomCases) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 rng(seed);
    std::vector<int64_t> shape;
    for (size_t rank = 1 + rng() % 4; shape.size() < rank;)
      shape.push_back(1 + static_cast<int64_t>(rng() % 6));
    const size_t axis = rng() % shape.size();
    std::vector<bool> reduced(shape.size(), false);
    reduced[axis] = true;
    const bool keep_dims = rng() % 2 == 0, last = rng() % 2 == 0, max = rng() % 2 == 0;
    // There are only a few values, so that many are equal.
    const NDArray x = SmallIntegers(shape, seed, rng() % 2 == 0 ? ir::kFloat32 : ir::kInt8);
    const NDArray y = RunOp(fmt::format("arg_{}(a) {{axis: {}, keep_dims: {}, last: {}}}",
                                        max ? "max" : "min", axis, keep_dims ? 1 : 0, last ? 1 : 0),
                            {x});
    ASSERT_EQ(y.type(), ir::kInt64);
    for (const auto& [index, v] : Groups(x, reduced, keep_dims)) {
      const double best = max ? *std::ranges::max_element(v) : *std::ranges::min_element(v);
      const auto want = last ? v.rend() - std::find(v.rbegin(), v.rend(), best) - 1
                             : std::ranges::find(v, best) - v.begin();
      EXPECT_EQ(ElementAt(y, index), static_cast<double>(want));
    }
  }
}

TEST(ReductionTest, TypesAndScalars) {
  const NDArray bytes = Array(ir::kInt8, {3}, {100, 100, -50});
  EXPECT_EQ(RunOp("reduce_sum(a)", {bytes}).type(), ir::kInt8);
  EXPECT_THAT(Doubles(RunOp("reduce_mean(a)", {bytes})), ElementsAre(50));
  EXPECT_THAT(Doubles(RunOp("reduce_mean(a)", {Array(ir::kInt32, {2}, {-3, 0})})), ElementsAre(-1));
  EXPECT_THAT(Doubles(RunOp("reduce_max(a)", {bytes})), ElementsAre(100));
  // 2048 + 1 is no float16.
  const NDArray halves = Array(ir::kFloat16, {3}, {2048, 1, 1});
  const NDArray sum = RunOp("reduce_sum(a) {keep_dims: 0}", {halves});
  EXPECT_EQ(sum.type(), ir::kFloat16);
  EXPECT_THAT(sum.shape(), ElementsAre());
  EXPECT_THAT(Doubles(sum), ElementsAre(2050));
  const NDArray flags = Array(ir::kBool, {2, 2}, {1, 0, 0, 0});
  EXPECT_THAT(Doubles(RunOp("reduce_max(a) {axes: [1]}", {flags})), ElementsAre(1, 0));
  EXPECT_THAT(Doubles(RunOp("reduce_min(a) {axes: [1]}", {flags})), ElementsAre(0, 0));
  EXPECT_EQ(RunOp("reduce_min(a)", {flags}).type(), ir::kBool);
  EXPECT_THAT(Doubles(RunOp("arg_max(a)", {flags})), ElementsAre(0, 0));
  const NDArray scalar = Array(ir::kFloat32, {}, {3});
  EXPECT_THAT(Doubles(RunOp("reduce_mean(a)", {scalar})), ElementsAre(3));
  EXPECT_THAT(RunOp("reduce_sum(a)", {NDArray(ir::kFloat32, {1, 1, 2, 1, 1, 2, 1, 1})}).shape(),
              ElementsAre(1, 1, 1, 1, 1, 1, 1, 1));
}

TEST(CumsumTest, Directions) {
  const NDArray x = Array(ir::kInt32, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(Doubles(RunOp("cumsum(a) {axis: 1}", {x})), ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_THAT(Doubles(RunOp("cumsum(a) {axis: 0}", {x})), ElementsAre(1, 2, 3, 5, 7, 9));
  EXPECT_THAT(Doubles(RunOp("cumsum(a) {axis: -1, exclusive: 1}", {x})),
              ElementsAre(0, 1, 3, 0, 4, 9));
  EXPECT_THAT(Doubles(RunOp("cumsum(a) {axis: 1, reverse: 1}", {x})),
              ElementsAre(6, 5, 3, 15, 11, 6));
  EXPECT_THAT(Doubles(RunOp("cumsum(a) {axis: 1, reverse: 1, exclusive: 1}", {x})),
              ElementsAre(5, 3, 0, 11, 6, 0));
  const NDArray halves = Array(ir::kFloat16, {3}, {2048, 1, 1});
  EXPECT_THAT(Doubles(RunOp("cumsum(a) {axis: 0}", {halves})), ElementsAre(2048, 2048, 2050));
}

TEST(ReductionTest, Refuses) {
  const NDArray x(ir::kFloat32, {2, 3}), flags(ir::kBool, {2}), scalar(ir::kFloat32, {});
  struct Refused {
    std::string_view call;
    NDArray x;
    std::string_view message;
  };
  const Refused cases[] = {
      {"reduce_sum(a) {axes: [2]}", x, "axes = 2 of a tensor with 2 dimensions, expected -2 to 1"},
      {"reduce_sum(a) {axes: [1, -1]}", x, "axes names axis 1 twice"},
      {"reduce_sum(a) {axes: [-9223372036854775808]}", x, "expected -2 to 1"},
      {"reduce_sum(a) {keep_dims: 3}", x, "keep_dims = 3, expected 0 to 1"},
      {"reduce_sum(a)", flags, "input of bool, expected numbers"},
      {"reduce_mean(a)", flags, "input of bool, expected numbers"},
      {"arg_max(a) {axis: 0}", scalar, "axis = 0 of a tensor with 0 dimensions"},
      {"arg_max(a) {last: 2}", x, "last = 2, expected 0 to 1"},
      {"cumsum(a)", x, "needs its attribute axis"},
      {"cumsum(a) {axis: 5}", x, "axis = 5 of a tensor with 2 dimensions"},
      {"cumsum(a) {axis: 0}", flags, "input of bool, expected numbers"},
  };
  for (const Refused& c : cases)
    EXPECT_THAT(RefusalOf(c.call, {c.x}), HasSubstr(c.message)) << c.call;
}

}  // namespace
}  // namespace kiln::graph
