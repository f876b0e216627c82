#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <random>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/workload_key.h"
#include "graph/run_op_testing.h"

namespace kiln::graph {
namespace {

using ir::NDArray;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Case {
  std::vector<int64_t> kernel, strides, before, after, dilations;
  bool ceil = false, include = false;

  size_t dims() const { return kernel.size(); }
  int64_t Span(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
  // Returns the extent that ONNX defines.
  int64_t Extent(size_t d, int64_t in) const {
    const double windows =
        static_cast<double>(in + before[d] + after[d] - Span(d)) / static_cast<double>(strides[d]);
    auto out = static_cast<int64_t>(ceil ? std::ceil(windows) : std::floor(windows)) + 1;
    if (ceil && (out - 1) * strides[d] >= in + before[d]) --out;
    return out;
  }
  std::string Text() const {
    return fmt::format("kernel: [{}], strides: [{}], pads: [{}, {}], dilations: [{}], ceil: {}",
                       fmt::join(kernel, ", "), fmt::join(strides, ", "), fmt::join(before, ", "),
                       fmt::join(after, ", "), fmt::join(dilations, ", "), ceil ? 1 : 0);
  }
};

struct Pooled {
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  int64_t position = -1, covered = 0, padded = 0;
};

// Pools one window of x [N, C, image].
Pooled PoolAt(const Case& c, const NDArray& x, const Index& out) {
  Pooled pooled;
  ForEachIndex(c.kernel, [&](const Index& k) {
    Index at = {out[0], out[1]};
    bool is_padded = true;
    for (size_t d = 0; d < c.dims(); ++d) {
      at.push_back(out[d + 2] * c.strides[d] + k[d] * c.dilations[d] - c.before[d]);
      is_padded &= at.back() < x.shape()[d + 2] + c.after[d];
    }
    pooled.padded += is_padded ? 1 : 0;
    const int64_t flat = x.Flatten(at);
    if (flat < 0) return;
    ++pooled.covered;
    pooled.sum += x.GetDouble(flat);
    if (x.GetDouble(flat) > pooled.max) {
      pooled.max = x.GetDouble(flat);
      pooled.position = flat;
    }
  });
  return pooled;
}

Case Draw(std::mt19937_64& rng, std::vector<int64_t>& image) {
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng);
  };
  Case c;
  const int64_t dims = between(1, 3);
  for (int64_t d = 0; d < dims; ++d) {
    c.kernel.push_back(between(1, 3));
    c.strides.push_back(between(1, 3));
    c.before.push_back(between(0, c.kernel.back() - 1));
    c.after.push_back(between(0, c.kernel.back() - 1));
    c.dilations.push_back(between(1, 2));
    image.push_back(c.Span(static_cast<size_t>(d)) + between(0, 4));
  }
  c.ceil = between(0, 1) == 1;
  c.include = between(0, 1) == 1;
  return c;
}

TEST(PoolTest, MatchLoopsOverRandomCases) {
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 rng(seed);
    std::vector<int64_t> shape = {2, 2}, image, order = {0};
    const Case c = Draw(rng, image);
    shape.insert(shape.end(), image.begin(), image.end());
    NDArray x(ir::kFloat32, shape);
    x.FillRandom(seed);
    std::vector<int64_t> out = {2, 2};
    for (size_t d = 0; d < c.dims(); ++d) out.push_back(c.Extent(d, image[d]));
    const NDArray max =
        ArrayOf(ir::kFloat32, out, [&](const Index& o) { return PoolAt(c, x, o).max; });
    EXPECT_EQ(RunOp(fmt::format("max_pool(a) {{{}}}", c.Text()), {x}), max);
    const NDArray positions =
        ArrayOf(ir::kInt64, out, [&](const Index& o) { return PoolAt(c, x, o).position; });
    EXPECT_EQ(RunOp(fmt::format("max_pool_indices(a) {{{}}}", c.Text()), {x}), positions);
    const NDArray avg = ArrayOf(ir::kFloat32, out, [&](const Index& o) {
      const Pooled pooled = PoolAt(c, x, o);
      return pooled.sum / static_cast<double>(c.include ? pooled.padded : pooled.covered);
    });
    const std::string average =
        fmt::format("avg_pool(a) {{{}, count_include_pad: {}}}", c.Text(), c.include ? 1 : 0);
    EXPECT_OK(ir::Compare(RunOp(average, {x}), avg, {.relative = 1e-5, .absolute = 1e-6}));

    std::vector<size_t> behind = {0};
    for (size_t d = 0; d < c.dims(); ++d) behind.push_back(d + 2);
    behind.push_back(1);
    EXPECT_EQ(
        RunOp(fmt::format("max_pool(a) {{{}, channels_last: 1}}", c.Text()), {Permuted(x, behind)}),
        Permuted(max, behind));
  }
}

TEST(PoolTest, CeilDropsAWindowThatStartsInThePadding) {
  const NDArray x = Array(ir::kFloat32, {1, 1, 3}, {1, 2, 3});
  // ceil((3 + 2 - 2) / 2) + 1 = 3, but the third window would start at 4 of 1 + 3 elements.
  const std::string attributes = "{kernel: [2], strides: [2], pads: [1, 1], ceil: 1}";
  EXPECT_THAT(Doubles(RunOp("max_pool(a) " + attributes, {x})), ElementsAre(1, 3));
  // A window that reaches past the padded input counts only the elements in it.
  const NDArray five = Array(ir::kFloat32, {1, 1, 5}, {1, 2, 3, 4, 5});
  EXPECT_THAT(
      Doubles(
          RunOp("avg_pool(a) {kernel: [3], strides: [3], ceil: 1, count_include_pad: 1}", {five})),
      ElementsAre(2, 4.5));
}

TEST(PoolTest, IndicesPreferTheFirstOfEqualValues) {
  const NDArray x = Array(ir::kInt64, {1, 2, 4}, {5, 5, 1, 5, -9, -9, -9, -9});
  EXPECT_THAT(Doubles(RunOp("max_pool_indices(a) {kernel: [4], pads: [1, 1]}", {x})),
              ElementsAre(0, 0, 1, 4, 4, 5));
  const double infinity = std::numeric_limits<double>::infinity();
  const NDArray low = Array(ir::kFloat32, {1, 1, 2}, {-infinity, -infinity});
  EXPECT_THAT(Doubles(RunOp("max_pool_indices(a) {kernel: [2], pads: [1, 0]}", {low})),
              ElementsAre(0, 0));
}

TEST(GlobalPoolTest, OneToThreeDimensions) {
  const NDArray x = Array(ir::kFloat32, {1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const NDArray average = RunOp("global_avg_pool(a)", {x});
  EXPECT_THAT(average.shape(), ElementsAre(1, 2, 1, 1));
  EXPECT_THAT(Doubles(average), ElementsAre(2.5, 6.5));
  EXPECT_THAT(Doubles(RunOp("global_max_pool(a)", {x})), ElementsAre(4, 8));
  EXPECT_THAT(Doubles(RunOp("global_max_pool(a) {channels_last: 1}", {x})), ElementsAre(7, 8));
  EXPECT_THAT(Doubles(RunOp("global_avg_pool(a)", {Array(ir::kFloat32, {1, 1, 3}, {1, 2, 6})})),
              ElementsAre(3));
  EXPECT_THAT(RunOp("global_max_pool(a)", {NDArray(ir::kInt8, {1, 2, 3, 3, 3})}).shape(),
              ElementsAre(1, 2, 1, 1, 1));
  // 2048 + 1 is no float16.
  const NDArray halves = Array(ir::kFloat16, {1, 1, 4}, {2048, 1, 1, 2});
  EXPECT_THAT(Doubles(RunOp("global_avg_pool(a)", {halves})), ElementsAre(513));
  EXPECT_THAT(Doubles(RunOp("avg_pool(a) {kernel: [4]}", {halves})), ElementsAre(513));
}

TEST(PoolTest, AreTheLibrarysOperators) {
  struct SameCase {
    std::string_view op, args, call;
    std::vector<int64_t> x;
  };
  const SameCase cases[] = {
      {"max_pool2d_nchw",
       "1,7,9,3,3,3,2,1",
       "max_pool(a) {kernel: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1]}",
       {1, 3, 7, 9}},
      {"max_pool2d_nhwc",
       "1,6,8,3,2,2,2,0",
       "max_pool(a) {kernel: [2, 2], strides: [2, 2], channels_last: 1, ceil: 1}",
       {1, 6, 8, 3}},
      {"avg_pool2d_nchw",
       "1,7,9,3,3,3,2,1",
       "avg_pool(a) {kernel: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1]}",
       {1, 3, 7, 9}},
      {"avg_pool2d_nhwc",
       "1,7,9,3,3,3,2,1,1",
       "avg_pool(a) {kernel: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1], count_include_pad: 1, "
       "channels_last: 1}",
       {1, 7, 9, 3}},
      {"avg_pool2d_nhwc",
       "1,6,8,3,2,2,2,0",
       "avg_pool(a) {kernel: [2, 2], strides: [2, 2], channels_last: 1}",
       {1, 6, 8, 3}},
      {"global_avg_pool2d_nchw", "1,7,9,3", "global_avg_pool(a)", {1, 3, 7, 9}},
      {"global_avg_pool2d_nhwc", "1,7,9,3", "global_avg_pool(a) {channels_last: 1}", {1, 7, 9, 3}},
      {"global_max_pool2d_nchw", "1,7,9,3", "global_max_pool(a)", {1, 3, 7, 9}},
      {"global_max_pool2d_nhwc", "1,7,9,3", "global_max_pool(a) {channels_last: 1}", {1, 7, 9, 3}},
  };
  for (const SameCase& c : cases) {
    for (ir::Type type : {ir::kFloat32, ir::kFloat16}) {
      const StatusOr<dag::DagPtr> want = dag::BuildOp(c.op, c.args, {.dtype = type});
      ASSERT_OK(want);
      const dag::DagPtr found = DagOf(c.call, {{type, c.x}});
      EXPECT_TRUE(dag::Equal(*found, **want)) << c.call;
      EXPECT_EQ(dag::WorkloadKey(*found), dag::WorkloadKey(**want)) << c.call;
    }
  }
}

TEST(PoolTest, Refuses) {
  const NDArray x(ir::kFloat32, {1, 2, 5, 5}), ints(ir::kInt32, {1, 2, 5, 5}),
      flags(ir::kBool, {1, 2, 5, 5}), flat(ir::kFloat32, {2, 5});
  struct Refused {
    std::string_view call;
    NDArray x;
    std::string_view message;
  };
  const Refused cases[] = {
      {"max_pool(a) {kernel: [2]}", x, "kernel has 1 entries, the image 2 dimensions"},
      {"max_pool(a) {kernel: [0, 2]}", x, "kernel = [0, 2], expected 1 to"},
      {"max_pool(a) {kernel: [9223372036854775807, 2]}", x, "expected 1 to"},
      {"max_pool(a) {kernel: [6, 2]}", x, "the kernel spans 6 along H"},
      {"max_pool(a) {kernel: [8, 2], ceil: 1, strides: [2, 1]}", x, "a window spans 8 along H"},
      {"max_pool(a) {kernel: [2, 2], pads: [2, 0, 0, 0]}", x, "pad = 2 must be smaller than the "},
      {"max_pool(a) {kernel: [2147483648, 2147483648], dilations: [2147483648, 2147483648]}", x,
       "along H"},
      {"max_pool(a)", x, "max_pool needs its attribute kernel"},
      {"max_pool(a) {kernel: [2, 2]}", flags, "input of bool, expected numbers"},
      {"avg_pool(a) {kernel: [2, 2]}", ints, "input of int32, expected a float type"},
      {"max_pool_indices(a) {kernel: [6, 6]}", x, "the kernel spans 6"},
      {"global_avg_pool(a)", flat, "expected batch, channels"},
      {"global_avg_pool(a)", ints, "expected a float type"},
  };
  for (const Refused& c : cases)
    EXPECT_THAT(RefusalOf(c.call, {c.x}), HasSubstr(c.message)) << c.call;
}

}  // namespace
}  // namespace kiln::graph
