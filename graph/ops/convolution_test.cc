#include <fmt/format.h>
#include <fmt/ranges.h>

#include <random>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"
#include "graph/node_dag.h"
#include "graph/run_op_testing.h"
#include "graph/text.h"

namespace kiln::graph {
namespace {

using ir::NDArray;
using ::testing::HasSubstr;

// Attributes of a convolution. The channels come before the image.
struct Case {
  std::vector<int64_t> strides, before, after, dilations, output_padding;
  int64_t groups = 1;

  size_t dims() const { return strides.size(); }
  std::string Text(bool channels_last) const {
    return fmt::format("strides: [{}], pads: [{}, {}], dilations: [{}], channels_last: {}",
                       fmt::join(strides, ", "), fmt::join(before, ", "), fmt::join(after, ", "),
                       fmt::join(dilations, ", "), channels_last ? 1 : 0);
  }
};

// x is [N, CI, image], w is [CO, CI/groups, kernel].
NDArray ConvReference(const Case& c, const NDArray& x, const NDArray& w) {
  std::vector<int64_t> shape = {x.shape()[0], w.shape()[0]};
  for (size_t d = 0; d < c.dims(); ++d) {
    const int64_t span = (w.shape()[d + 2] - 1) * c.dilations[d] + 1;
    shape.push_back((x.shape()[d + 2] + c.before[d] + c.after[d] - span) / c.strides[d] + 1);
  }
  std::vector<int64_t> window(w.shape().begin() + 1, w.shape().end());
  return ArrayOf(ir::kFloat32, shape, [&](const Index& out) {
    double sum = 0;
    ForEachIndex(window, [&](const Index& k) {
      const int64_t group = out[1] / (w.shape()[0] / c.groups);
      Index at = {out[0], group * w.shape()[1] + k[0]}, weight = {out[1]};
      weight.insert(weight.end(), k.begin(), k.end());
      for (size_t d = 0; d < c.dims(); ++d)
        at.push_back(out[d + 2] * c.strides[d] + k[d + 1] * c.dilations[d] - c.before[d]);
      if (x.Flatten(at) >= 0) sum += ElementAt(x, at) * ElementAt(w, weight);
    });
    return sum;
  });
}

// x is [N, CI, image], w is [CI, CO/groups, kernel]. Every element is added to all outputs that it
// reaches.
NDArray TransposeReference(const Case& c, const NDArray& x, const NDArray& w) {
  std::vector<int64_t> shape = {x.shape()[0], w.shape()[1] * c.groups};
  for (size_t d = 0; d < c.dims(); ++d) {
    shape.push_back((x.shape()[d + 2] - 1) * c.strides[d] + c.output_padding[d] +
                    (w.shape()[d + 2] - 1) * c.dilations[d] + 1 - c.before[d] - c.after[d]);
  }
  NDArray y(ir::kFloat32, shape);
  std::vector<int64_t> window(w.shape().begin() + 1, w.shape().end());
  ForEachIndex(x.shape(), [&](const Index& in) {
    ForEachIndex(window, [&](const Index& k) {
      const int64_t group = in[1] / (w.shape()[0] / c.groups);
      Index at = {in[0], group * w.shape()[1] + k[0]}, weight = {in[1]};
      weight.insert(weight.end(), k.begin(), k.end());
      for (size_t d = 0; d < c.dims(); ++d)
        at.push_back(in[d + 2] * c.strides[d] + k[d + 1] * c.dilations[d] - c.before[d]);
      const int64_t flat = y.Flatten(at);
      if (flat >= 0) y.SetDouble(flat, y.GetDouble(flat) + ElementAt(x, in) * ElementAt(w, weight));
    });
  });
  return y;
}

// Returns {0, 2, 3, 1}, which moves the channels to the end. KernelFirst returns {2, 3, 0, 1} for
// weights.
std::vector<size_t> ChannelsBehind(size_t dims) {
  std::vector<size_t> order = {0};
  for (size_t d = 0; d < dims; ++d) order.push_back(d + 2);
  order.push_back(1);
  return order;
}
std::vector<size_t> KernelFirst(size_t dims, bool swap) {
  std::vector<size_t> order;
  for (size_t d = 0; d < dims; ++d) order.push_back(d + 2);
  order.push_back(swap ? 1 : 0);
  order.push_back(swap ? 0 : 1);
  return order;
}

class RandomCase {
 public:
  explicit RandomCase(uint64_t seed) : rng_(seed) {}

  int64_t Between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng_);
  }
  std::vector<int64_t> List(size_t count, int64_t low, int64_t high) {
    std::vector<int64_t> values;
    for (size_t i = 0; i < count; ++i) values.push_back(Between(low, high));
    return values;
  }
  Case Draw() {
    const auto dims = static_cast<size_t>(Between(1, 3));
    return {.strides = List(dims, 1, 3),
            .before = List(dims, 0, 2),
            .after = List(dims, 0, 2),
            .dilations = Between(0, 2) == 0 ? List(dims, 1, 3) : std::vector<int64_t>(dims, 1),
            .output_padding = List(dims, 0, 2),
            .groups = Between(1, 2)};
  }

 private:
  std::mt19937_64 rng_;
};

std::vector<int64_t> Shape(std::vector<int64_t> channels, const std::vector<int64_t>& image) {
  channels.insert(channels.end(), image.begin(), image.end());
  return channels;
}

TEST(ConvTest, MatchesLoopsOverRandomCases) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomCase random(seed);
    const Case c = random.Draw();
    const std::vector<int64_t> kernel = random.List(c.dims(), 1, 3);
    std::vector<int64_t> image;
    for (size_t d = 0; d < c.dims(); ++d)
      image.push_back((kernel[d] - 1) * c.dilations[d] + random.Between(1, 3));
    const int64_t group_ci = random.Between(1, 2), group_co = random.Between(1, 2);
    const NDArray x = SmallIntegers(Shape({2, group_ci * c.groups}, image), seed);
    const NDArray w = SmallIntegers(Shape({group_co * c.groups, group_ci}, kernel), seed + 1000);
    const NDArray want = ConvReference(c, x, w);
    const std::string groups = fmt::format("groups: {}", c.groups);
    EXPECT_EQ(RunOp(fmt::format("conv(a, b) {{{}, {}}}", c.Text(false), groups), {x, w}), want);
    const std::vector<size_t> behind = ChannelsBehind(c.dims());
    EXPECT_EQ(RunOp(fmt::format("conv(a, b) {{{}, {}}}", c.Text(true), groups),
                    {Permuted(x, behind), Permuted(w, KernelFirst(c.dims(), true))}),
              Permuted(want, behind));
    EXPECT_EQ(RunOp(fmt::format("conv(a, b) {{{}, {}, output_first: 1}}", c.Text(true), groups),
                    {Permuted(x, behind), Permuted(w, behind)}),
              Permuted(want, behind));
  }
}

TEST(DepthwiseConvTest, MatchesLoopsOverRandomCases) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomCase random(seed);
    Case c = random.Draw();
    const std::vector<int64_t> kernel = random.List(c.dims(), 1, 3);
    std::vector<int64_t> image;
    for (size_t d = 0; d < c.dims(); ++d)
      image.push_back((kernel[d] - 1) * c.dilations[d] + random.Between(1, 3));
    c.groups = random.Between(1, 3);
    const int64_t multiplier = random.Between(1, 2);
    const NDArray x = SmallIntegers(Shape({2, c.groups}, image), seed);
    const NDArray w = SmallIntegers(Shape({c.groups, multiplier}, kernel), seed + 1000);
    // The same elements as weights of groups of one channel.
    const NDArray of_groups(ir::kFloat32, Shape({c.groups * multiplier, 1}, kernel), Doubles(w));
    const NDArray want = ConvReference(c, x, of_groups);
    EXPECT_EQ(RunOp(fmt::format("depthwise_conv(a, b) {{{}}}", c.Text(false)), {x, w}), want);
    const std::vector<size_t> behind = ChannelsBehind(c.dims());
    EXPECT_EQ(RunOp(fmt::format("depthwise_conv(a, b) {{{}}}", c.Text(true)),
                    {Permuted(x, behind), Permuted(w, KernelFirst(c.dims(), false))}),
              Permuted(want, behind));
  }
}

TEST(ConvTransposeTest, MatchesLoopsOverRandomCases) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomCase random(seed);
    Case c = random.Draw();
    if (seed % 3 == 0) c.strides.assign(c.dims(), 1);
    const std::vector<int64_t> kernel = random.List(c.dims(), 1, 4);
    const std::vector<int64_t> image = random.List(c.dims(), 1, 4);
    bool is_image = true;
    for (size_t d = 0; d < c.dims(); ++d) {
      is_image &= (image[d] - 1) * c.strides[d] + c.output_padding[d] +
                      (kernel[d] - 1) * c.dilations[d] + 1 >
                  c.before[d] + c.after[d];
    }
    if (!is_image) continue;
    const int64_t group_ci = random.Between(1, 2), group_co = random.Between(1, 2);
    const NDArray x = SmallIntegers(Shape({2, group_ci * c.groups}, image), seed);
    const NDArray w = SmallIntegers(Shape({group_ci * c.groups, group_co}, kernel), seed + 1000);
    const NDArray want = TransposeReference(c, x, w);
    const std::string more = fmt::format("groups: {}, output_padding: [{}]", c.groups,
                                         fmt::join(c.output_padding, ", "));
    EXPECT_EQ(RunOp(fmt::format("conv_transpose(a, b) {{{}, {}}}", c.Text(false), more), {x, w}),
              want);
    const std::vector<size_t> behind = ChannelsBehind(c.dims());
    EXPECT_EQ(RunOp(fmt::format("conv_transpose(a, b) {{{}, {}}}", c.Text(true), more),
                    {Permuted(x, behind), Permuted(w, KernelFirst(c.dims(), false))}),
              Permuted(want, behind));
  }
}

TEST(ConvTransposeTest, NoStretchedImage) {
  // The number of products is that of elements of x times taps of the kernel, apart from the
  // border.
  const dag::DagPtr dag =
      DagOf("conv_transpose(a, b) {strides: [2, 2], pads: [1, 0, 0, 1], groups: 2}",
            {{ir::kFloat32, {1, 4, 16, 16}}, {ir::kFloat32, {4, 3, 4, 4}}});
  EXPECT_LE(dag->flop_count(), 2.0 * 18 * 18 * 4 * 3 * 16 * 1.1);
}

// The library's operator with its arguments, and the network's operator with its inputs.
struct SameCase {
  std::string_view op, args, call;
  std::vector<int64_t> x, w;
};

void ExpectSame(const SameCase& c, ir::Type type) {
  const StatusOr<dag::DagPtr> want = dag::BuildOp(c.op, c.args, {.dtype = type});
  ASSERT_OK(want);
  const dag::DagPtr found = DagOf(c.call, {{type, c.x}, {type, c.w}});
  EXPECT_TRUE(dag::Equal(*found, **want)) << c.call;
  EXPECT_EQ(dag::WorkloadKey(*found), dag::WorkloadKey(**want)) << c.call;
}

TEST(ConvolutionTest, AreTheLibrarysOperators) {
  const SameCase cases[] = {
      {"conv2d_nchw",
       "1,7,9,4,6,3,3,2,1",
       "conv(a, b) {strides: [2, 2], pads: [1, 1, 1, 1]}",
       {1, 6, 7, 9},
       {4, 6, 3, 3}},
      {"conv2d_nchw",
       "2,9,9,4,6,3,1,1,0,2,2",
       "conv(a, b) {dilations: [2, 2], groups: 2}",
       {2, 6, 9, 9},
       {4, 3, 3, 1}},
      {"conv2d_nhwc",
       "1,7,9,4,6,3,3,1,1",
       "conv(a, b) {pads: [1, 1, 1, 1], channels_last: 1}",
       {1, 7, 9, 6},
       {3, 3, 6, 4}},
      {"conv2d_nhwc",
       "1,7,9,4,6,3,2,1,1,1,2,output_first=1",
       "conv(a, b) {pads: [1, 1, 1, 1], channels_last: 1, output_first: 1, groups: 2}",
       {1, 7, 9, 6},
       {4, 3, 2, 3}},
      {"conv1d_ncw",
       "1,11,4,3,3,2,1",
       "conv(a, b) {strides: [2], pads: [1, 1]}",
       {1, 3, 11},
       {4, 3, 3}},
      {"conv1d_nwc",
       "1,11,4,3,3,2,1",
       "conv(a, b) {strides: [2], pads: [1, 1], channels_last: 1}",
       {1, 11, 3},
       {3, 3, 4}},
      {"conv3d_ncdhw", "1,4,5,3,2,2,2,2,2,1,0", "conv(a, b)", {1, 2, 4, 5, 3}, {2, 2, 2, 2, 2}},
      {"conv3d_ndhwc",
       "1,4,5,3,2,2,2,2,2,1,0",
       "conv(a, b) {channels_last: 1}",
       {1, 4, 5, 3, 2},
       {2, 2, 2, 2, 2}},
      {"depthwise_conv2d_nchw",
       "1,7,7,3,3,3,2,1",
       "depthwise_conv(a, b) {strides: [2, 2], pads: [1, 1, 1, 1]}",
       {1, 3, 7, 7},
       {3, 1, 3, 3}},
      {"depthwise_conv2d_nhwc",
       "1,7,7,3,3,3,1,1,2,2",
       "depthwise_conv(a, b) {pads: [1, 1, 1, 1], dilations: [2, 2], channels_last: 1}",
       {1, 7, 7, 3},
       {3, 3, 3, 2}},
      {"conv2d_transpose_nchw",
       "1,4,5,3,2,4,4,2,1",
       "conv_transpose(a, b) {strides: [2, 2], pads: [1, 1, 1, 1]}",
       {1, 2, 4, 5},
       {2, 3, 4, 4}},
      {"conv2d_transpose_nhwc",
       "1,4,5,3,2,3,3,2,1,1",
       "conv_transpose(a, b) {strides: [2, 2], pads: [1, 1, 1, 1], output_padding: [1, 1], "
       "channels_last: 1}",
       {1, 4, 5, 2},
       {3, 3, 2, 3}},
      {"conv2d_transpose_nchw",
       "1,4,5,3,2,3,3,1,1",
       "conv_transpose(a, b) {pads: [1, 1, 1, 1]}",
       {1, 2, 4, 5},
       {2, 3, 3, 3}},
      {"conv2d_transpose_nhwc",
       "1,4,5,3,2,3,3,1,0",
       "conv_transpose(a, b) {channels_last: 1}",
       {1, 4, 5, 2},
       {3, 3, 2, 3}},
  };
  for (const SameCase& c : cases) {
    for (ir::Type type : {ir::kFloat32, ir::kFloat16, ir::kInt8}) ExpectSame(c, type);
  }
}

TEST(ConvolutionTest, Float16IsSummedInFloat32) {
  // 2048 + 1 is no float16.
  const NDArray x = Array(ir::kFloat16, {1, 3, 1}, {2048, 1, 1});
  const NDArray w = Array(ir::kFloat16, {1, 3, 1}, {1, 1, 1});
  EXPECT_THAT(Doubles(RunOp("conv(a, b)", {x, w})), testing::ElementsAre(2050));
  const NDArray bytes = Array(ir::kInt8, {1, 2, 1}, {100, 100});
  const NDArray y = RunOp("conv(a, b)", {bytes, bytes});
  EXPECT_EQ(y.type(), ir::kInt32);
  EXPECT_THAT(Doubles(y), testing::ElementsAre(20000));
}

// Returns the layout-free inputs of a convolution in a network. `weights` is text that computes the
// weights from an input w.
std::vector<std::string> LayoutFree(std::string_view weights) {
  const StatusOr<Graph> graph = ParseGraph(fmt::format(
      "input x: float32[1, 4, 2]\ninput w: float32[1, 2, 3]\n{}y = conv(x, k) {{channels_last: "
      "1}}\noutput y\n",
      weights));
  KILN_CHECK(graph.ok(), "{}", std::string(graph.status().message()));
  std::vector<int> nodes;
  for (int i = 0; i < graph->num_nodes(); ++i) nodes.push_back(i);
  const StatusOr<NodeDag> written = MakeNodeDag(*graph, nodes, graph->outputs());
  KILN_CHECK(written.ok());
  const StatusOr<dag::DagPtr> read = dag::ParseDag(dag::PrintDag(*written->dag));
  EXPECT_OK(read);
  return written->dag->op(written->dag->size() - 1).attrs().layout_free_placeholders;
}

TEST(ConvolutionTest, OnlyWeightsThatAreInputsAreFreeInTheirLayout) {
  EXPECT_THAT(LayoutFree("k = reshape(w) {shape: [1, 2, 3]}\n"), testing::IsEmpty());
  EXPECT_THAT(
      DagOf("conv(a, b) {channels_last: 1}", {{ir::kFloat32, {1, 4, 2}}, {ir::kFloat32, {1, 2, 3}}})
          ->op(3)
          .attrs()
          .layout_free_placeholders,
      testing::ElementsAre("p1"));
}

TEST(ConvolutionTest, Refuses) {
  const NDArray x(ir::kFloat32, {1, 4, 5, 5}), w(ir::kFloat32, {4, 2, 3, 3}),
      flat(ir::kFloat32, {4, 4}), halves(ir::kFloat16, {4, 4, 3, 3}),
      square(ir::kFloat32, {4, 4, 3, 3}), flags(ir::kBool, {1, 4, 5, 5});
  struct Refused {
    std::string_view call;
    std::vector<NDArray> inputs;
    std::string_view message;
  };
  const Refused cases[] = {
      {"conv(a, b)", {flat, w}, "expected batch, channels and 1 to 3 dimensions of an image"},
      {"conv(a, b)", {x, flat}, "input 1 has 2 dimensions, expected 4"},
      {"conv(a, b)", {x, halves}, "inputs of float32 and float16"},
      {"conv(a, b)", {flags, flags}, "input of bool, expected numbers"},
      {"conv(a, b)", {x, w}, "4 input channels in 1 groups meet weights of shape [4, 2, 3, 3]"},
      {"conv(a, b) {output_first: 1}",
       {x, square},
       "output_first = 1 where the channels are not last"},
      {"conv(a, b) {groups: 3}", {x, w}, "4 input channels in 3 groups"},
      {"conv(a, b) {groups: 0}", {x, w}, "groups = 0, expected 1 to"},
      {"conv(a, b) {strides: [1]}", {x, square}, "strides has 1 entries, expected 2"},
      {"conv(a, b) {strides: [0, 1]}", {x, square}, "strides = 0, expected 1 to"},
      {"conv(a, b) {pads: [1, 1]}", {x, square}, "pads has 2 entries, expected 4"},
      {"conv(a, b) {pads: [-1, 0, 0, 0]}", {x, square}, "pads = -1, expected 0 to"},
      {"conv(a, b) {pads: [9223372036854775807, 0, 0, 0]}", {x, square}, "expected 0 to"},
      {"conv(a, b) {dilations: [3, 1]}", {x, square}, "the kernel spans 7 along H"},
      {"conv(a, b) {channels_last: 2}", {x, square}, "channels_last = 2, expected 0 to 1"},
      {"depthwise_conv(a, b) {channels_last: 1}", {x, square}, "5 input channels meet weights"},
      {"conv_transpose(a, b) {pads: [4, 0, 4, 0]}", {x, square}, "-1 output rows or columns"},
      {"conv_transpose(a, b) {strides: [2147483648, 1]}", {x, square}, "output rows or columns"},
      {"conv_transpose(a, b) {groups: 3}", {x, square}, "4 input channels in 3 groups"},
      {"conv_transpose(a, b) {output_padding: [1]}", {x, square}, "output_padding has 1 entries"},
  };
  for (const Refused& c : cases)
    EXPECT_THAT(RefusalOf(c.call, c.inputs), HasSubstr(c.message)) << c.call;
}

}  // namespace
}  // namespace kiln::graph
