#include "graph/passes/passes.h"

#include <fmt/format.h>

#include "base/status_testing.h"
#include "graph/channels.h"
#include "graph/evaluate.h"
#include "graph/text_testing.h"
#include "graph/verify.h"

namespace kiln::graph {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns the graph after all passes. Each pass is verified, and the result is compared with the
// reference.
Graph Passed(std::string_view text, const PassOptions& options = {}) {
  const Graph before = ParsedGraph(text);
  StatusOr<Graph> after = RunPasses(before, options, {.verify = true});
  KILN_CHECK(after.ok(), "{}", std::string(after.status().message()));
  std::vector<ir::NDArray> inputs;
  for (ValueId id : before.inputs()) {
    const TensorType& type = before.value(id).type;
    inputs.emplace_back(type.type, type.shape);
    inputs.back().FillRandom(static_cast<uint64_t>(id) + 7);
  }
  const auto want = Evaluate(before, inputs), got = Evaluate(*after, inputs);
  KILN_CHECK(want.ok() && got.ok(), "evaluation");
  for (size_t i = 0; i < want->size(); ++i) {
    const Status same = ir::Compare((*got)[i], (*want)[i], {.relative = 2e-4, .absolute = 2e-4});
    EXPECT_TRUE(same.ok()) << std::string(same.message()) << PrintGraph(*after);
  }
  return *std::move(after);
}

int CountOf(const Graph& graph, std::string_view op) {
  int count = 0;
  for (const Node& node : graph.nodes()) count += node.op->name == op;
  return count;
}

TEST(PassesTest, BatchNormAfterAConvolutionBecomesItsBias) {
  const Graph graph = Passed(R"(
input x: float32[1, 8, 8, 4]
const w: float32[3, 3, 4, 6] = random(1, -1, 1)
const s: float32[6] = random(2, 0.5, 1)
const b: float32[6] = random(3, -1, 1)
const m: float32[6] = random(4, -1, 1)
const v: float32[6] = random(5, 0.5, 1)
c = conv(x, w) {pads: [1, 1, 1, 1], channels_last: 1}
n = batch_norm(c, s, b, m, v) {axis: -1}
y = relu(n)
output y)");
  EXPECT_EQ(graph.num_nodes(), 3) << PrintGraph(graph);
  EXPECT_EQ(CountOf(graph, "add"), 1);
}

// relu(x s + b) is relu(x + b / s) s, and s goes into the weights that read it.
TEST(PassesTest, BatchNormBeforeAConvolutionLosesItsScale) {
  const std::string_view text = R"(
input x: float32[1, 8, 8, 4]
const w: float32[3, 3, 4, 6] = random(1, -1, 1)
const s: float32[4] = random(2, {0}, {0})
const b: float32[4] = random(3, -1, 1)
const m: float32[4] = random(4, -1, 1)
const v: float32[4] = random(5, 0.5, 1)
n = batch_norm(x, s, b, m, v) {{axis: -1}}
r = relu(n)
y = conv(r, w) {{pads: [1, 1, 1, 1], channels_last: 1}}
output y)";
  EXPECT_EQ(CountOf(Passed(fmt::format(fmt::runtime(text), 0.5)), "mul"), 0);
  // A negative scale cannot be taken out of a relu.
  EXPECT_EQ(CountOf(Passed(fmt::format(fmt::runtime(text), -1.0)), "mul"), 1);
}

TEST(PassesTest, AScaleThatOthersReadStays) {
  const Graph graph = Passed(R"(
input x: float32[2, 8]
const w: float32[8, 6] = random(1, -1, 1)
const s: float32[8] = random(2, 0.5, 1)
n = mul(x, s)
y = matmul(n, w)
output y, n)");
  EXPECT_EQ(CountOf(graph, "mul"), 1);
}

TEST(PassesTest, ImagesOfChannelsSecondGetNoMoreTransposesThanTheyNeed) {
  const Graph graph = Passed(R"(
input x: float32[1, 4, 9, 7]
const w: float32[6, 4, 3, 3] = random(1, -1, 1)
const v: float32[6, 6, 1, 1] = random(2, -1, 1)
const b: float32[1, 6, 1, 1] = random(3, -1, 1)
const d: float32[6, 1, 3, 3] = random(4, -1, 1)
const f: float32[12, 5] = random(5, -1, 1)
c = conv(x, w) {pads: [1, 1, 1, 1], strides: [2, 2]}
cb = add(c, b)
r = relu(cb)
p = max_pool(r) {kernel: [3, 3], pads: [1, 1, 1, 1]}
e = conv(p, v)
h = depthwise_conv(e, d) {pads: [1, 1, 1, 1]}
s = add(h, r)
t = concat(s, p) {axis: 1}
g = global_avg_pool(t)
u = reshape(g) {shape: [1, 12]}
y = matmul(u, f)
output y)");
  // The image comes with its channels second, so one transpose stays. 4 weights were transposed
  // before.
  EXPECT_EQ(CountOf(graph, "transpose"), 1) << PrintGraph(graph);
}

TEST(PassesTest, LayoutsOfWhatComesOutStay) {
  const Graph graph = Passed(R"(
input x: float32[1, 4, 5, 5]
const w: float32[6, 4, 3, 3] = random(1, -1, 1)
y = conv(x, w)
z = softmax(y) {axis: 1}
output y, z)");
  EXPECT_EQ(CountOf(graph, "transpose"), 2) << PrintGraph(graph);
}

TEST(PassesTest, Winograd) {
  const std::string_view text = R"(
input x: float32[1, 9, 8, 4]
const w: float32[3, 3, 4, 6] = random(1, -1, 1)
y = conv(x, w) {pads: [1, 1, 1, 1], channels_last: 1}
z = conv(x, w) {pads: [1, 1, 1, 1], strides: [2, 2], channels_last: 1}
output y, z)";
  for (const WinogradRule rule : {WinogradRule::kTvm, WinogradRule::kFast}) {
    for (bool gpu : {false, true}) {
      const Graph graph = Passed(text, {.is_gpu = gpu, .winograd = rule});
      // CPUs also use Winograd's method for stride 2.
      const int strided = !gpu && rule == WinogradRule::kFast ? 1 : 0;
      EXPECT_EQ(CountOf(graph, "winograd_conv"), 1 + strided);
      // The weights are folded.
      EXPECT_EQ(CountOf(graph, "winograd_weights"), 0);
      EXPECT_EQ(CountOf(graph, "conv"), 1 - strided);
    }
  }
}

// Weights change if they have the type of the option, and more channels than elements of the
// window.
TEST(PassesTest, WeightsLieAlongTheSum) {
  const std::string_view text = R"(
input x: {0}[1, 9, 8, 4]
const w: {0}[3, 3, 4, 6] = random(1, -1, 1)
const v: {0}[3, 3, 2, 6] = random(2, -1, 1)
const u: {0}[3, 5, 4, 6] = random(3, -1, 1)
a = conv(x, w) {{pads: [1, 1, 1, 1], channels_last: 1}}
b = conv(x, v) {{pads: [1, 1, 1, 1], channels_last: 1, groups: 2}}
c = conv(x, u) {{pads: [1, 2, 1, 2], channels_last: 1}}
output a, b, c)";
  const auto turned = [&](std::string_view type) {
    const Graph graph =
        Passed(fmt::format(fmt::runtime(text), type), {.along_sum = {ir::kFloat32}});
    std::vector<std::vector<int64_t>> shapes;
    for (const Node& node : graph.nodes()) {
      // The transposes are folded.
      EXPECT_EQ(node.op->name, "conv");
      if (IntOf(node, "output_first") == 1)
        shapes.push_back(graph.value(node.inputs[1]).type.shape);
    }
    return shapes;
  };
  EXPECT_THAT(turned("float32"), testing::ElementsAre(std::vector<int64_t>{6, 3, 3, 4}));
  EXPECT_THAT(turned("float64"), testing::IsEmpty());
}

TEST(PassesTest, WhatDoesNothingGoes) {
  const Graph graph = Passed(R"(
input x: float32[2, 6]
const one: float32[2] = [1, 2]
i = identity(x)
c = cast(i) {to: float32}
r = reshape(c) {shape: [2, 2, 3]}
q = reshape(r) {shape: [2, 6]}
t = transpose(q) {axes: [1, 0]}
u = transpose(t) {axes: [1, 0]}
a, b = split(u) {axis: 1, sizes: [2, 4]}
y = tanh(a)
z = sigmoid(b)
output y, z)");
  // Two slices and two functions.
  EXPECT_EQ(graph.num_nodes(), 4) << PrintGraph(graph);
}

TEST(PassesTest, EqualNodesAndConstantsBecomeOne) {
  const Graph graph = Passed(R"(
input x: float32[2, 6]
const a: float32[6] = [1, 2, 3, 4, 5, 6]
const b: float32[6] = [1, 2, 3, 4, 5, 6]
p = add(x, a)
q = add(x, b)
y = mul(p, q)
output y)");
  EXPECT_EQ(CountOf(graph, "add"), 1);
}

// Three products of x have a bias, as in attention. Moves follow the first two products, a function
// follows the third.
constexpr std::string_view kProjections = R"(
input x: float32[4, 6]
const v: float32[6, 8] = random(1, -1, 1)
const w: float32[6, 8] = random(2, -1, 1)
const u: float32[6, 4] = random(3, -1, 1)
const a: float32[8] = random(4, -1, 1)
const b: float32[1, 8] = random(5, -1, 1)
p = matmul(x, v)
q = matmul(x, w)
r = matmul(x, u)
pa = add(p, a)
qb = add(b, q)
s = relu(r)
ph = reshape(pa) {shape: [4, 2, 4]}
pt = transpose(ph) {axes: [1, 0, 2]}
qt = transpose(qb)
output pt, qt, s)";

TEST(PassesTest, ProductsOfOneInputBecomeOneWhereMovesReadThem) {
  const Graph graph = Passed(kProjections);
  EXPECT_EQ(CountOf(graph, "matmul"), 2) << PrintGraph(graph);
  EXPECT_EQ(CountOf(graph, "add"), 1);
  EXPECT_EQ(CountOf(graph, "slice"), 2);
  EXPECT_EQ(CountOf(graph, "concat"), 0) << "of constants";
}

TEST(PassesTest, ProductsAreMergedOfTheirOwnKindAlone) {
  const auto merged = [](std::string_view p, std::string_view q) {
    const Graph graph = Passed(fmt::format(R"(
input x: float32[4, 6]
input y: float32[4, 6]
const v: float32[6, 8] = random(1, -1, 1)
const w: float32[6, 8] = random(2, -1, 1)
const t: float32[8, 6] = random(3, -1, 1)
const b: float32[8] = random(4, -1, 1)
const c: float32[4, 1] = random(5, -1, 1)
{}
{}
pt = transpose(p)
qt = transpose(q)
output pt, qt)",
                                           p, q));
    return CountOf(graph, "matmul") == 1;
  };
  EXPECT_TRUE(merged("p = matmul(x, v)", "q = matmul(x, w)"));
  EXPECT_TRUE(merged("p = matmul(x, t) {transpose_b: 1}", "q = matmul(x, t) {transpose_b: 1}"));
  EXPECT_FALSE(merged("p = matmul(x, v)", "q = matmul(y, w)"));
  EXPECT_FALSE(merged("p = matmul(x, v)", "q = matmul(x, t) {transpose_b: 1}"));
  EXPECT_FALSE(merged("p = matmul(x, v)", "qq = matmul(x, w)\nq = add(qq, b)"));
  EXPECT_FALSE(merged("p = matmul(x, v)", "qq = matmul(x, w)\nq = add(qq, c)")) << "by rows";
  EXPECT_FALSE(merged("p = matmul(x, v)", "qq = matmul(x, w)\nq = add(qq, qq)"));
}

TEST(PassesTest, ZerosAroundAnImageGoIntoTheConvolution) {
  const Graph graph = Passed(R"(
input x: float32[1, 6, 6, 4]
const w: float32[3, 3, 4, 6] = random(1, -1, 1)
p = pad(x) {before: [0, 0, 0, 0], after: [0, 1, 1, 0], mode: constant}
y = conv(p, w) {strides: [2, 2], channels_last: 1}
output y)");
  EXPECT_EQ(CountOf(graph, "pad"), 0) << PrintGraph(graph);
}

TEST(PassesTest, APassCanBeLeftOutAndWatched) {
  const Graph before = ParsedGraph("input x: float32[2]\ni = identity(x)\ny = relu(i)\noutput y");
  std::vector<std::string> names;
  ASSERT_OK_AND_ASSIGN(const Graph after,
                       RunPasses(before, {},
                                 {.leave_out = {"simplify"},
                                  .observer = [&](std::string_view name, const Graph&,
                                                  const Graph&) { names.emplace_back(name); }}));
  EXPECT_EQ(CountOf(after, "identity"), 1);
  EXPECT_THAT(names, Not(::testing::Contains("simplify")));
  EXPECT_THAT(names, ::testing::Contains("fold-batch-norm"));
}

}  // namespace
}  // namespace kiln::graph
