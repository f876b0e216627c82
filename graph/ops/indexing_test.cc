#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>

#include "base/status_testing.h"
#include "graph/run_op_testing.h"

namespace kiln::graph {
namespace {

using ir::NDArray;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

NDArray Ids(std::vector<int64_t> shape, std::vector<double> values) {
  return Array(ir::kInt64, std::move(shape), std::move(values));
}

// Returns an array of 1, 2, 3, ...
NDArray Counting(std::vector<int64_t> shape, ir::Type type = ir::kFloat32) {
  NDArray array(type, std::move(shape));
  for (int64_t i = 0; i < array.num_elements(); ++i) array.SetDouble(i, static_cast<double>(i + 1));
  return array;
}

std::vector<int64_t> RandomShape(std::mt19937_64& rng, size_t rank) {
  std::vector<int64_t> shape;
  while (shape.size() < rank) shape.push_back(1 + static_cast<int64_t>(rng() % 4));
  return shape;
}

NDArray RandomIds(std::mt19937_64& rng, std::vector<int64_t> shape, int64_t low, int64_t high) {
  return ArrayOf(rng() % 2 == 0 ? ir::kInt32 : ir::kInt64, std::move(shape), [&](const Index&) {
    return static_cast<double>(low +
                               static_cast<int64_t>(rng() % static_cast<uint64_t>(high - low)));
  });
}

int64_t FromEnd(double id, int64_t extent) {
  const auto number = static_cast<int64_t>(id);
  return number < 0 ? number + extent : number;
}
int64_t Number(double id, int64_t extent) {
  return std::clamp<int64_t>(FromEnd(id, extent), 0, extent - 1);
}

TEST(GatherTest, IdsOfAnyRank) {
  const NDArray x = Counting({2, 3});
  EXPECT_EQ(RunOp("gather(a, b) {axis: 1}", {x, Ids({2, 2}, {0, 2, -1, 1})}),
            Array(ir::kFloat32, {2, 2, 2}, {1, 3, 3, 2, 4, 6, 6, 5}));
  EXPECT_EQ(RunOp("gather(a, b)", {x, Ids({}, {1})}), Array(ir::kFloat32, {3}, {4, 5, 6}));
  EXPECT_EQ(RunOp("gather(a, b) {axis: -1}", {x, Array(ir::kInt32, {1}, {0})}),
            Array(ir::kFloat32, {2, 1}, {1, 4}));
  // Numbers outside of the axis are clipped.
  EXPECT_EQ(RunOp("gather(a, b)", {x, Ids({2}, {-9, 9})}), x);
  const NDArray flags = Array(ir::kBool, {2}, {0, 1});
  EXPECT_EQ(RunOp("gather(a, b)", {flags, Ids({2}, {1, 0})}), Array(ir::kBool, {2}, {1, 0}));
}

TEST(GatherElementsTest, MatchesLoopsOverRandomCases) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 rng(seed);
    const std::vector<int64_t> shape = RandomShape(rng, 1 + rng() % 4);
    const size_t axis = rng() % shape.size();
    std::vector<int64_t> ids_shape = shape;
    for (int64_t& extent : ids_shape)
      extent = 1 + static_cast<int64_t>(rng() % static_cast<uint64_t>(extent));
    ids_shape[axis] = 1 + static_cast<int64_t>(rng() % 5);
    const NDArray x = Counting(shape);
    const NDArray ids = RandomIds(rng, ids_shape, -shape[axis], shape[axis]);
    EXPECT_EQ(RunOp(fmt::format("gather_elements(a, b) {{axis: {}}}", axis), {x, ids}),
              ArrayOf(ir::kFloat32, ids_shape, [&](const Index& i) {
                Index at = i;
                at[axis] = Number(ElementAt(ids, i), shape[axis]);
                return ElementAt(x, at);
              }));
  }
}

TEST(GatherNdTest, MatchesLoopsOverRandomCases) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 rng(seed);
    const std::vector<int64_t> shape = RandomShape(rng, 1 + rng() % 4);
    const size_t batch = rng() % shape.size();
    const size_t named = 1 + rng() % (shape.size() - batch);
    std::vector<int64_t> rows(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(batch));
    for (int64_t extent : RandomShape(rng, rng() % 3)) rows.push_back(extent);
    std::vector<int64_t> ids_shape = rows, out = rows;
    ids_shape.push_back(static_cast<int64_t>(named));
    out.insert(out.end(), shape.begin() + static_cast<std::ptrdiff_t>(batch + named), shape.end());
    const NDArray x = Counting(shape), ids = RandomIds(rng, ids_shape, -1, 1);
    EXPECT_EQ(RunOp(fmt::format("gather_nd(a, b) {{batch_dims: {}}}", batch), {x, ids}),
              ArrayOf(ir::kFloat32, out, [&](const Index& i) {
                Index at(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(batch));
                Index id(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(rows.size()));
                id.push_back(0);
                for (size_t k = 0; k < named; ++k) {
                  id.back() = static_cast<int64_t>(k);
                  at.push_back(Number(ElementAt(ids, id), shape[batch + k]));
                }
                at.insert(at.end(), i.begin() + static_cast<std::ptrdiff_t>(rows.size()), i.end());
                return ElementAt(x, at);
              }));
  }
}

TEST(OneHotTest, NegativeAndOutside) {
  const NDArray ids = Ids({5}, {0, 2, -1, 3, -4});
  EXPECT_EQ(RunOp("one_hot(a) {depth: 3}", {ids}),
            Array(ir::kFloat32, {5, 3}, {1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(RunOp("one_hot(a) {depth: 2, axis: 0, on: 5, off: -1, type: int8}", {Ids({}, {1})}),
            Array(ir::kInt8, {2}, {-1, 5}));
  EXPECT_EQ(RunOp("one_hot(a) {depth: 2, axis: 0, type: bool}", {Array(ir::kInt32, {1}, {1})}),
            Array(ir::kBool, {2, 1}, {0, 1}));
}

TEST(ResampleTest, MatchesLoopsOverRandomCases) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 rng(seed);
    const std::vector<int64_t> shape = RandomShape(rng, 1 + rng() % 4), table = RandomShape(rng, 2);
    const size_t axis = rng() % shape.size();
    const NDArray x = SmallIntegers(shape, seed), weights = SmallIntegers(table, seed + 1000);
    const NDArray ids = RandomIds(rng, table, 0, shape[axis]);
    std::vector<int64_t> out = shape;
    out[axis] = table[0];
    EXPECT_EQ(RunOp(fmt::format("resample(a, b, c) {{axis: {}}}", axis), {x, ids, weights}),
              ArrayOf(ir::kFloat32, out, [&](const Index& i) {
                double sum = 0;
                for (int64_t t = 0; t < table[1]; ++t) {
                  Index at = i;
                  at[axis] = static_cast<int64_t>(ElementAt(ids, {i[axis], t}));
                  sum += ElementAt(weights, {i[axis], t}) * ElementAt(x, at);
                }
                return sum;
              }));
  }
  const NDArray halves = Array(ir::kFloat16, {3}, {2048, 1, 1}),
                ones = Array(ir::kFloat16, {1, 3}, {1, 1, 1});
  EXPECT_EQ(RunOp("resample(a, b, c) {axis: 0}", {halves, Ids({1, 3}, {0, 1, 2}), ones}),
            Array(ir::kFloat16, {1}, {2050}));
}

double Combine(std::string_view mode, double x, double update) {
  if (mode == "add") return x + update;
  if (mode == "mul") return x * update;
  if (mode == "max") return std::max(x, update);
  if (mode == "min") return std::min(x, update);
  return update;
}

constexpr std::string_view kModes[] = {"none", "add", "mul", "max", "min"};

TEST(ScatterElementsTest, MatchesLoopsOverRandomCases) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 rng(seed);
    const std::vector<int64_t> shape = RandomShape(rng, 1 + rng() % 3);
    const size_t axis = rng() % shape.size();
    std::vector<int64_t> ids_shape = shape;
    for (int64_t& extent : ids_shape)
      extent = 1 + static_cast<int64_t>(rng() % static_cast<uint64_t>(extent));
    ids_shape[axis] = 1 + static_cast<int64_t>(rng() % 5);
    const ir::Type type = rng() % 2 == 0 ? ir::kFloat32 : ir::kInt64;
    const NDArray x = SmallIntegers(shape, seed, type);
    const NDArray updates = SmallIntegers(ids_shape, seed + 1000, type);
    // Some ids lie outside, so their updates have no effect.
    const NDArray ids = RandomIds(rng, ids_shape, -shape[axis] - 1, shape[axis] + 1);
    for (std::string_view mode : kModes) {
      NDArray want = x;
      ForEachIndex(ids_shape, [&](const Index& i) {
        Index at = i;
        at[axis] = FromEnd(ElementAt(ids, i), shape[axis]);
        const int64_t flat = want.Flatten(at);
        if (flat >= 0)
          want.SetDouble(flat, Combine(mode, want.GetDouble(flat), ElementAt(updates, i)));
      });
      EXPECT_EQ(RunOp(fmt::format("scatter_elements(a, b, c) {{axis: {}, mode: {}}}", axis, mode),
                      {x, ids, updates}),
                want)
          << mode;
    }
  }
}

TEST(ScatterNdTest, MatchesLoopsOverRandomCases) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 rng(seed);
    const std::vector<int64_t> shape = RandomShape(rng, 1 + rng() % 3);
    const size_t named = 1 + rng() % shape.size();
    const std::vector<int64_t> outer = RandomShape(rng, rng() % 3);
    std::vector<int64_t> ids_shape = outer, updates_shape = outer;
    ids_shape.push_back(static_cast<int64_t>(named));
    updates_shape.insert(updates_shape.end(), shape.begin() + static_cast<std::ptrdiff_t>(named),
                         shape.end());
    const NDArray x = SmallIntegers(shape, seed), updates = SmallIntegers(updates_shape, seed + 99);
    const NDArray ids = RandomIds(rng, ids_shape, -2, 3);
    for (std::string_view mode : kModes) {
      NDArray want = x;
      ForEachIndex(updates_shape, [&](const Index& i) {
        Index id(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(outer.size())), at;
        id.push_back(0);
        for (size_t d = 0; d < named; ++d) {
          id.back() = static_cast<int64_t>(d);
          at.push_back(FromEnd(ElementAt(ids, id), shape[d]));
        }
        at.insert(at.end(), i.begin() + static_cast<std::ptrdiff_t>(outer.size()), i.end());
        const int64_t flat = want.Flatten(at);
        if (flat >= 0)
          want.SetDouble(flat, Combine(mode, want.GetDouble(flat), ElementAt(updates, i)));
      });
      EXPECT_EQ(RunOp(fmt::format("scatter_nd(a, b, c) {{mode: {}}}", mode), {x, ids, updates}),
                want)
          << mode;
    }
  }
}

TEST(ScatterTest, Types) {
  const NDArray flags = Array(ir::kBool, {3}, {0, 0, 1});
  EXPECT_EQ(
      RunOp("scatter_elements(a, b, c)", {flags, Ids({2}, {0, -1}), Array(ir::kBool, {2}, {1, 0})}),
      Array(ir::kBool, {3}, {1, 0, 0}));
  const NDArray halves = Array(ir::kFloat16, {1}, {2048}), ones = Array(ir::kFloat16, {2}, {1, 1});
  EXPECT_EQ(RunOp("scatter_elements(a, b, c) {mode: add}", {halves, Ids({2}, {0, 0}), ones}),
            Array(ir::kFloat16, {1}, {2050}));
  const NDArray bytes = Array(ir::kInt8, {2}, {3, 4});
  EXPECT_EQ(RunOp("scatter_nd(a, b, c) {mode: mul}",
                  {bytes, Ids({2, 1}, {1, 1}), Array(ir::kInt8, {2}, {2, 3})}),
            Array(ir::kInt8, {2}, {3, 24}));
}

TEST(IndexingTest, Refuses) {
  const NDArray x = Counting({2, 3}), ids = Ids({2, 2}, {0, 0, 0, 0}), scalar = Counting({}),
                flags = Array(ir::kBool, {2, 2}, {0, 0, 0, 0}), wide = Ids({1, 4}, {0, 0, 0, 0}),
                square = Counting({2, 2}), id = Ids({}, {0});
  struct Refused {
    std::string_view call;
    std::vector<NDArray> inputs;
    std::string_view message;
  };
  const Refused cases[] = {
      {"gather(a, b)", {x, x}, "input of float32, expected whole numbers"},
      {"gather(a, b) {axis: 2}", {x, ids}, "axis = 2"},
      {"gather(a, b)", {scalar, ids}, "axis = 0 of a tensor with 0 dimensions"},
      {"gather_elements(a, b)", {x, id}, "input 1 has 0 dimensions, expected 2"},
      {"gather_elements(a, b)",
       {x, wide},
       "input 1 of shape [1, 4] is larger than x of shape [2, 3] along axis 1"},
      {"gather_elements(a, b)", {scalar, id}, "axis = 0 of a tensor with 0 dimensions"},
      {"gather_nd(a, b)", {x, wide}, "name 4 axes, x of shape [2, 3] has 2"},
      {"gather_nd(a, b)", {x, id}, "ids of shape [], expected at least 1 dimensions"},
      {"gather_nd(a, b) {batch_dims: 1}", {x, wide}, "name 4 axes, x of shape [2, 3] has 1"},
      {"gather_nd(a, b) {batch_dims: 1}",
       {x, Ids({3, 1}, {0, 0, 0})},
       "differ in the first 1 axes"},
      {"gather_nd(a, b) {batch_dims: -1}", {x, ids}, "batch_dims = -1, expected 0 to 2"},
      {"one_hot(a) {depth: 0}", {ids}, "depth = 0, expected 1 to"},
      {"one_hot(a) {depth: 2, axis: 3}", {ids}, "axis = 3"},
      {"one_hot(a) {depth: 2, type: int9}", {ids}, "int9"},
      {"one_hot(a) {depth: 2, on: 300, type: int8}", {ids}, "on = 300 is no int8"},
      {"one_hot(a) {depth: 2}", {x}, "input of float32, expected whole numbers"},
      {"resample(a, b, c) {axis: 0}", {x, ids, x}, "expected two axes, the same shape and float32"},
      {"resample(a, b, b) {axis: 0}", {x, ids}, "weights int64[2, 2]"},
      {"resample(a, b, c) {axis: 0}", {ids, ids, square}, "expected a float type"},
      {"scatter_elements(a, b, c)", {x, ids, x}, "updates of shape [2, 3], expected [2, 2]"},
      {"scatter_elements(a, b, c)", {x, ids, flags}, "updates of bool, expected float32 as x is"},
      {"scatter_elements(a, b, a) {mode: add}", {flags, ids}, "input of bool, expected numbers"},
      {"scatter_elements(a, b, c) {mode: sub}",
       {x, ids, square},
       "mode = sub, expected one of none, add, mul, max, min"},
      {"scatter_elements(a, b, c) {axis: 1}",
       {Counting({1, 3}), ids, square},
       "is larger than x of shape [1, 3] along axis 0"},
      {"scatter_nd(a, b, c)", {x, ids, x}, "updates of shape [2, 3], expected [2]"},
      {"scatter_nd(a, b, c)", {x, wide, x}, "name 4 axes"},
      {"scatter_nd(a, b, a)", {scalar, id}, "expected at least 1 dimensions"},
  };
  for (const Refused& c : cases)
    EXPECT_THAT(RefusalOf(c.call, c.inputs), HasSubstr(c.message)) << c.call;
}

}  // namespace
}  // namespace kiln::graph
