#include "graph/passes/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/status_testing.h"
#include "graph/channels.h"
#include "graph/evaluate.h"
#include "graph/partition.h"
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

std::string Ops(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes()) ops.push_back(node.op->name);
  return fmt::format("{}", fmt::join(ops, " "));
}

// The forms that PyTorch exports, and others write by hand.
TEST(PassesTest, NormalisationOverRowsIsOneNode) {
  const auto ops = [](std::string_view nodes, std::string_view outputs = "y") {
    return Ops(Passed(fmt::format(R"(
input x: float32[2, 5, 8]
const two: float32[] = [2]
const one: float32[] = [1]
const epsilon: float32[1] = [0.01]
const scale: float32[8] = random(1, 0.5, 1)
const shift: float32[1, 8] = random(2, -1, 1)
const rows: float32[5, 8] = random(3, -1, 1)
{}
output {})",
                                  nodes, outputs)));
  };
  constexpr std::string_view kMean =
      "s = power(x, two)\nm = reduce_mean(s) {axes: [-1], keep_dims: 1}\n"
      "e = add(m, epsilon)\n";
  const auto of_mean = [&](std::string_view rest) { return ops(fmt::format("{}{}", kMean, rest)); };
  EXPECT_EQ(of_mean("r = sqrt(e)\ni = reciprocal(r)\nn = mul(x, i)\ny = mul(scale, n)"),
            "rms_norm");
  EXPECT_EQ(of_mean("r = sqrt(e)\ny = div(x, r)"), "rms_norm");
  EXPECT_EQ(of_mean("r = rsqrt(e)\ny = mul(r, x)"), "rms_norm");
  EXPECT_EQ(of_mean("r = sqrt(e)\ni = div(one, r)\nn = mul(x, i)\ny = mul(n, rows)"),
            "rms_norm mul")
      << "the factor differs from row to row";
  EXPECT_EQ(ops("s = square(x)\nm = reduce_mean(s) {axes: [2], keep_dims: 1}\ne = add(m, epsilon)\n"
                "r = rsqrt(e)\ny = mul(x, r)"),
            "rms_norm");
  EXPECT_EQ(of_mean("r = sqrt(e)\ny = div(r, x)"), "power reduce_mean add sqrt div")
      << "upside down";
  EXPECT_EQ(of_mean("r = sqrt(m)\ny = div(x, r)"), "power reduce_mean sqrt div") << "no epsilon";
  EXPECT_EQ(
      ops("s = mul(x, x)\nm = reduce_mean(s) {axes: [1, 2], keep_dims: 1}\ne = add(epsilon, m)\n"
          "r = sqrt(e)\nn = div(x, r)\ny = mul(n, rows)"),
      "rms_norm");
  EXPECT_EQ(ops("s = mul(x, x)\nm = reduce_mean(s) {axes: [1], keep_dims: 1}\ne = add(epsilon, m)\n"
                "r = sqrt(e)\ny = div(x, r)"),
            "mul reduce_mean add sqrt div")
      << "not the last axis";
  constexpr std::string_view kCentred =
      "a = reduce_mean(x) {axes: [2], keep_dims: 1}\nd = sub(x, a)\ns = power(d, two)\n"
      "m = reduce_mean(s) {axes: [2], keep_dims: 1}\ne = add(m, epsilon)\nr = sqrt(e)\n"
      "n = div(d, r)\n";
  EXPECT_EQ(ops(fmt::format("{}t = mul(n, scale)\ny = add(t, shift)", kCentred)), "layer_norm add")
      << "the shift has an axis more";
  EXPECT_EQ(ops(fmt::format("{}t = mul(n, scale)\ny = add(scale, t)", kCentred)), "layer_norm");
  EXPECT_EQ(ops(fmt::format("{}y = add(n, scale)", kCentred)), "layer_norm add");
  EXPECT_EQ(ops(fmt::format("{}y = add(d, n)", kCentred)), "reduce_mean sub layer_norm add");
  EXPECT_EQ(ops(fmt::format("{}y = mul(n, scale)", kCentred), "y, n"), "layer_norm mul")
      << "the quotient is an output";
}

// Products of networks that PyTorch exports have two axes, and what follows them has three.
TEST(PassesTest, ReshapesGoBehindElementwiseFunctions) {
  const Graph graph = Passed(R"(
input x: float32[1, 6, 8]
const w: float32[8, 12] = random(1, -1, 1)
const v: float32[12, 8] = random(2, -1, 1)
const b: float32[12] = random(3, -1, 1)
const c: float32[1, 1, 8] = random(4, -1, 1)
const half: float32[1, 1, 1] = [0.5]
x2 = reshape(x) {shape: [6, 8]}
p = matmul(x2, w)
p3 = reshape(p) {shape: [1, 6, 12]}
q = add(p3, b)
h = mul(q, half)
g = gelu(h)
g2 = reshape(g) {shape: [6, 12]}
r = matmul(g2, v)
r3 = reshape(r) {shape: [1, 6, 8]}
s = add(x, r3)
y = add(s, c)
output y)");
  EXPECT_EQ(CountOf(graph, "reshape"), 2) << PrintGraph(graph);
  const std::vector<KernelGroup> kernels = PartitionIntoKernels(graph, {});
  const auto products = std::ranges::count_if(kernels, [&](const KernelGroup& group) {
    return graph.node(group.anchor).op->name == "matmul";
  });
  EXPECT_EQ(products, 2);
  for (const KernelGroup& group : kernels) {
    const std::string& op = graph.node(group.anchor).op->name;
    EXPECT_TRUE(op == "matmul" || op == "reshape") << "a kernel of " << op;
  }
}

// GPT-2's GELU reads the reshape of a product four times.
TEST(PassesTest, ReshapesGoBehindAFunctionOfSeveralOperators) {
  const auto graph_of = [](std::string_view output) {
    return Passed(fmt::format(R"(
input x: float32[1, 6, 8]
const w: float32[8, 12] = random(1, -1, 1)
const v: float32[12, 8] = random(2, -1, 1)
const three: float32[] = [3]
const a: float32[] = [0.044715]
const b: float32[] = [0.7978846]
const one: float32[] = [1]
const half: float32[] = [0.5]
x2 = reshape(x) {{shape: [6, 8]}}
p = matmul(x2, w)
r = reshape(p) {{shape: [1, 6, 12]}}
h = mul(r, half)
c = power(r, three)
d = mul(c, a)
e = add(r, d)
f = mul(e, b)
t = tanh(f)
u = add(t, one)
g = mul(h, u)
g2 = reshape(g) {{shape: [6, 12]}}
q = matmul(g2, v)
y = reshape(q) {{shape: [1, 6, 8]}}
output {})",
                              output));
  };
  const Graph graph = graph_of("y");
  EXPECT_EQ(CountOf(graph, "reshape"), 2) << PrintGraph(graph);
  for (const KernelGroup& group : PartitionIntoKernels(graph, {})) {
    const std::string& op = graph.node(group.anchor).op->name;
    EXPECT_TRUE(op == "matmul" || op == "reshape") << "a kernel of " << op;
  }
  EXPECT_GT(CountOf(graph_of("y, r"), "reshape"), 2) << "the reshape is an output";
}

// The search for a product behind each value looks at a value once, however many ways lead to it.
TEST(PassesTest, LongChainsOfSumsBeforeAReshapeEnd) {
  std::string text = "input x: float32[6, 8]\ns0 = relu(x)\n";
  for (int i = 0; i < 100; ++i) text += fmt::format("s{1} = add(s{0}, s{0})\n", i, i + 1);
  const Graph graph = Passed(text + "r = reshape(s100) {shape: [1, 6, 8]}\ny = relu(r)\noutput y");
  EXPECT_EQ(CountOf(graph, "relu"), 2);
}

TEST(PassesTest, ReshapesStayWhereAFunctionCannotGoBeforeThem) {
  const auto sums = [](std::string_view other, std::string_view outputs) {
    const Graph graph = Passed(fmt::format(R"(
input x: float32[6, 8]
input z: float32{}
const w: float32[8, 12] = random(1, -1, 1)
p = matmul(x, w)
r = reshape(p) {{shape: [2, 3, 12]}}
y = add(r, z)
output {})",
                                           other, outputs));
    for (const Node& node : graph.nodes())
      if (node.op->name == "add") return graph.value(node.outputs[0]).type.rank();
    return 0;
  };
  EXPECT_EQ(sums("[2, 3, 12]", "y"), 2);
  EXPECT_EQ(sums("[1, 12]", "y"), 2);
  EXPECT_EQ(sums("[]", "y"), 2);
  EXPECT_EQ(sums("[3, 12]", "y"), 3) << "along an axis that the reshape makes";
  EXPECT_EQ(sums("[2, 1, 12]", "y"), 3);
  EXPECT_EQ(sums("[2, 3, 12]", "y, r"), 3) << "the reshape is an output";
  EXPECT_EQ(sums("[4, 2, 3, 12]", "y"), 4) << "the result is larger";
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

// The passes' results are compared with those of the network itself (Passed).
TEST(PassesTest, RowsOfDisjointPatchesBecomeChannels) {
  const auto weights_of = [](std::string_view image, std::string_view kernel,
                             std::string_view attributes) {
    const Graph graph = Passed(fmt::format(R"(
input x: float32[{}]
const w: float32[{}] = random(1, -1, 1)
y = conv(x, w) {{channels_last: 1, {}}}
output y)",
                                           image, kernel, attributes));
    for (const Node& node : graph.nodes())
      if (node.op->name == "conv") return graph.value(node.inputs[1]).type.shape;
    return std::vector<int64_t>{};
  };
  using Shape = std::vector<int64_t>;
  const Shape folded = {16, 1, 48, 6};
  EXPECT_EQ(weights_of("1, 32, 48, 3", "16, 16, 3, 6", "strides: [16, 16]"), folded);
  EXPECT_EQ(weights_of("2, 33, 48, 3", "16, 16, 3, 6", "strides: [9, 16], pads: [1, 0, 3, 0]"),
            folded)
      << "rows of the image are as they were";
  EXPECT_EQ(weights_of("1, 8, 2", "8, 2, 4", "strides: [8]"), (Shape{1, 16, 4})) << "sound";
  EXPECT_EQ(weights_of("1, 2, 4, 8, 4", "2, 2, 4, 4, 3", "strides: [2, 2, 4]"),
            (Shape{2, 2, 1, 16, 3}))
      << "a volume";
  const Shape plain = {16, 16, 3, 6};
  EXPECT_EQ(weights_of("1, 32, 48, 3", "16, 16, 3, 6", "strides: [16, 8]"), plain);
  EXPECT_EQ(weights_of("1, 32, 50, 3", "16, 16, 3, 6", "strides: [16, 16]"), plain)
      << "columns are left over";
  EXPECT_EQ(weights_of("1, 32, 32, 3", "16, 16, 3, 6", "strides: [16, 16], pads: [0, 8, 0, 8]"),
            plain);
  EXPECT_EQ(weights_of("1, 32, 48, 3", "16, 16, 3, 6", "strides: [16, 16], dilations: [1, 2]"),
            plain);
  EXPECT_EQ(weights_of("1, 4, 4, 16", "2, 2, 16, 6", "strides: [2, 2]"), (Shape{2, 2, 16, 6}))
      << "sixteen channels fill a tile";
  EXPECT_EQ(weights_of("1, 4, 4, 3", "2, 2, 3, 6", "strides: [2, 2]"), (Shape{2, 2, 3, 6}))
      << "six channels fill none either";
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
