#include "graph/partition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/status_testing.h"
#include "graph/text_testing.h"

namespace kiln::graph {
namespace {

using ::testing::ElementsAre;

// Returns the groups by the names of their nodes' values: "a b c".
std::vector<std::string> Groups(std::string_view text, const PartitionOptions& options = {}) {
  const Graph graph = ParsedGraph(text);
  std::vector<std::string> groups;
  for (const KernelGroup& group : PartitionIntoKernels(graph, options)) {
    std::vector<std::string> names;
    for (int node : group.nodes) names.push_back(graph.value(graph.node(node).outputs[0]).name);
    groups.push_back(fmt::format("{}", fmt::join(names, " ")));
  }
  return groups;
}

TEST(PartitionTest, EpiloguesJoinTheProduct) {
  EXPECT_THAT(Groups(R"(
input x: float32[4, 8]
const w: float32[8, 8] = random(1, -1, 1)
const b: float32[8] = random(2, -1, 1)
p = matmul(x, w)
s = add(p, b)
y = relu(s)
output y)"),
              ElementsAre("p s y"));
}

TEST(PartitionTest, AProductThatIsReadTwiceEndsItsGroup) {
  EXPECT_THAT(Groups(R"(
input x: float32[4, 8]
const w: float32[8, 8] = random(1, -1, 1)
p = matmul(x, w)
a = relu(p)
q = matmul(a, w)
y = add(q, p)
output y)"),
              ElementsAre("p", "a", "q y"));
}

constexpr std::string_view kActivatedBefore = R"(
input x: float32[4, 8]
const w: float32[8, 8] = random(1, -1, 1)
const b: float32[8] = random(2, -1, 1)
p = matmul(x, w)
s = add(p, b)
a = relu(s)
q = matmul(a, w)
y = add(q, p)
output y)";

TEST(PartitionTest, ProloguesAreKernelsOfTheirOwnUnlessAskedFor) {
  EXPECT_THAT(Groups(kActivatedBefore), ElementsAre("p", "s a", "q y"));
  EXPECT_THAT(Groups(kActivatedBefore, {.prologues = true}), ElementsAre("p", "s a q y"));
}

TEST(PartitionTest, TheProductOfAGroupIsItsAnchor) {
  const Graph graph = ParsedGraph(kActivatedBefore);
  const std::vector<KernelGroup> groups = PartitionIntoKernels(graph, {.prologues = true});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(graph.value(graph.node(groups[1].anchor).outputs[0]).name, "q");
}

TEST(PartitionTest, APrologueIsCheapAndReadByOneProductAsItsData) {
  const auto network = [](std::string_view between) {
    return fmt::format(R"(
input x: float32[4, 8]
input z: float32[4, 8]
const w: float32[8, 8] = random(1, -1, 1)
p = matmul(x, w)
{}
output y)",
                       between);
  };
  const PartitionOptions options{.prologues = true};
  EXPECT_THAT(Groups(network("a = tanh(p)\nq = matmul(a, w)\ny = add(q, p)"), options),
              ElementsAre("p", "a", "q y"));
  EXPECT_THAT(
      Groups(network("a = mul(z, z)\nq = matmul(a, w)\nr = matmul(a, w)\ny = add(q, r)"), options),
      ElementsAre("p", "a", "r", "q y"))
      << "two products read it";
  EXPECT_THAT(Groups(network("a = add(x, z)\nq = matmul(a, w)\ny = add(q, p)"), options),
              ElementsAre("a", "q", "p y"))
      << "it reads twice what it makes";
  EXPECT_THAT(Groups(network("a = relu(w)\ny = matmul(p, a)"), options), ElementsAre("p", "a", "y"))
      << "weights";
}

// Returns the end of a unit of a residual network, with `between`, which reads its value x.
std::string TwoUnits(std::string_view between, std::string_view outputs = "y") {
  return fmt::format(R"(
input x0: float32[8, 8]
const w: float32[8, 8] = random(1, -1, 1)
const scale: float32[8] = random(2, -1, 1)
const shift: float32[8] = random(3, -1, 1)
p = matmul(x0, w)
x = add(p, x0)
{}
output {})",
                     between, outputs);
}

// Returns the outputs of the groups, by their names.
std::vector<std::string> OutputsOfGroups(std::string_view text, const PartitionOptions& options) {
  const Graph graph = ParsedGraph(text);
  std::vector<std::string> outputs;
  for (const KernelGroup& group : PartitionIntoKernels(graph, options)) {
    std::vector<std::string> names;
    for (ValueId id : group.outputs) names.push_back(graph.value(id).name);
    outputs.push_back(fmt::format("{}", fmt::join(names, " ")));
  }
  return outputs;
}

constexpr PartitionOptions kOwnWay{.prologues = true, .second_outputs = true};
constexpr std::string_view kIdentityUnit =
    "m = mul(x, scale)\ns = add(m, shift)\na = relu(s)\nq = matmul(a, w)\ny = add(q, x)";

TEST(PartitionTest, AProductMakesAlsoWhatTheNextReadsThroughFunctionsOfIt) {
  const std::string text = TwoUnits(kIdentityUnit);
  EXPECT_THAT(Groups(text), ElementsAre("p x", "m s a", "q y"));
  EXPECT_THAT(Groups(text, {.prologues = true}), ElementsAre("p x", "m s a q y"));
  EXPECT_THAT(Groups(text, kOwnWay), ElementsAre("p x m s a", "q y"));
  EXPECT_THAT(OutputsOfGroups(text, kOwnWay), ElementsAre("x a", "y"));
  EXPECT_THAT(OutputsOfGroups(text, {.prologues = true}), ElementsAre("x", "y"));
}

TEST(PartitionTest, SecondOutputsAreReadByAnyNumberOfProducts) {
  EXPECT_THAT(Groups(TwoUnits("a = relu(x)\nq = matmul(a, w)\nr = matmul(a, w)\nt = add(q, r)\n"
                              "y = add(t, x)"),
                     kOwnWay),
              ElementsAre("p x a", "r", "q t y"));
}

TEST(PartitionTest, SecondOutputsMayBeOutputsOfTheNetworkAndBesideOne) {
  const std::string both = TwoUnits(kIdentityUnit, "y, a, x");
  EXPECT_THAT(OutputsOfGroups(both, kOwnWay), ElementsAre("x a", "y"));
  const std::string only_x = TwoUnits("a = relu(x)\ny = matmul(a, w)", "y, x");
  EXPECT_THAT(OutputsOfGroups(only_x, kOwnWay), ElementsAre("x a", "y"));
  const std::string between = TwoUnits("m = mul(x, scale)\na = relu(m)\ny = matmul(a, w)", "y, m");
  EXPECT_THAT(Groups(between, kOwnWay), ElementsAre("p x m a", "y"));
  EXPECT_THAT(OutputsOfGroups(between, kOwnWay), ElementsAre("m a", "y"));
}

TEST(PartitionTest, SecondOutputsOfTheProductItself) {
  EXPECT_THAT(Groups(TwoUnits("a = relu(p)\ny = matmul(a, w)", "y, x"), kOwnWay),
              ElementsAre("p a", "x", "y"));
}

TEST(PartitionTest, SeveralFunctionsOfOneValueAreOutputsOfItsKernel) {
  const std::string text = TwoUnits(
      "a = relu(x)\nb = mul(x, scale)\nq = matmul(a, w)\nr = matmul(b, w)\nt = add(q, r)\n"
      "y = add(t, x)");
  EXPECT_THAT(OutputsOfGroups(text, kOwnWay), ElementsAre("x a b", "r", "y"));
}

TEST(PartitionTest, SecondOutputsAreCheapFunctionsOfTheValueAloneForProducts) {
  const auto groups = [](std::string_view between) { return Groups(TwoUnits(between), kOwnWay); };
  EXPECT_THAT(groups("a = tanh(x)\nq = matmul(a, w)\ny = add(q, x)"),
              ElementsAre("p x", "a", "q y"));
  EXPECT_THAT(groups("a = mul(x, x0)\nq = matmul(a, w)\ny = add(q, x)"),
              ElementsAre("p x", "a", "q y"))
      << "another tensor";
  EXPECT_THAT(groups("a = mul(x, x)\nq = matmul(a, w)\ny = add(q, x)"), ElementsAre("p x", "a q y"))
      << "no function of a channel: a prologue";
  EXPECT_THAT(groups("a = relu(x)\nb = softmax(a)\ny = add(b, x)"),
              ElementsAre("p x", "a", "b", "y"))
      << "no product reads it";
  EXPECT_THAT(groups("a = reshape(x) {shape: [4, 16]}\nb = relu(a)\nq = matmul(x, w)\n"
                     "r = reshape(q) {shape: [4, 16]}\ny = add(b, r)"),
              ElementsAre("p x", "q", "a b r y"))
      << "a view between";
}

// A reader of the value stands before the function of it: the kernel of both values comes before
// either.
TEST(PartitionTest, KernelsWithSecondOutputsRunBeforeAllThatReadsThem) {
  EXPECT_THAT(
      Groups(TwoUnits("z = softmax(x)\na = relu(x)\nq = matmul(a, w)\ny = add(q, z)"), kOwnWay),
      ElementsAre("p x a", "z", "q y"));
}

TEST(PartitionTest, WhatIsStoredBetweenIsKnown) {
  const Graph graph = ParsedGraph(TwoUnits(kIdentityUnit));
  const std::vector<KernelGroup> groups = PartitionIntoKernels(graph, kOwnWay);
  ASSERT_EQ(groups.size(), 2u);
  std::vector<std::string> stored;
  for (int node : groups[0].nodes) {
    if (IsStoredBetween(graph, groups[0], node))
      stored.push_back(graph.value(graph.node(node).outputs[0]).name);
  }
  EXPECT_THAT(stored, ElementsAre("x"));
}

// There are two heads of 32 features. Query, key and value are columns of rows of tokens.
TEST(PartitionTest, AProductTakesRowsFromWhereTheyLie) {
  const auto network = [](std::string_view axes, std::string_view strides) {
    return fmt::format(R"(
input x: float32[16, 192]
q0 = slice(x) {{begin: [0, 0], extents: [16, 64], strides: {1}}}
q1 = reshape(q0) {{shape: [16, 2, 32]}}
q = transpose(q1) {{axes: {0}}}
k0 = slice(x) {{begin: [0, 64], extents: [16, 64]}}
k1 = reshape(k0) {{shape: [16, 2, 32]}}
k = transpose(k1) {{axes: [1, 2, 0]}}
s = matmul(q, k)
output s)",
                       axes, strides);
  };
  const PartitionOptions options{.prologues = true};
  EXPECT_THAT(Groups(network("[1, 0, 2]", "[1, 1]"), options), ElementsAre("k0 k1 k", "q0 q1 q s"))
      << "the key's rows are columns of the product";
  EXPECT_THAT(Groups(network("[1, 0, 2]", "[1, 1]")), ElementsAre("q0 q1 q", "k0 k1 k", "s"));
  EXPECT_THAT(Groups(R"(
input x: float32[2, 16, 32]
const w: float32[64, 8] = random(1, -1, 1)
t = transpose(x) {axes: [1, 0, 2]}
r = reshape(t) {shape: [16, 64]}
y = matmul(r, w)
output y)",
                     options),
              ElementsAre("t r y"));
  EXPECT_THAT(Groups(R"(
input x: float32[2, 16, 8]
const w: float32[16, 8] = random(1, -1, 1)
t = transpose(x) {axes: [1, 0, 2]}
r = reshape(t) {shape: [16, 16]}
y = matmul(r, w)
output y)",
                     options),
              ElementsAre("t r", "y"))
      << "rows of 8";
}

// Returns two heads of attention over rows [tokens, 3 * 32], which one product makes. `scores` are
// the nodes from s, the product of queries and keys, to x, the input of the softmax.
std::string Heads(std::string_view scores = "x = mul(s, factor)",
                  std::string_view softmax = "w = softmax(x)", std::string_view outputs = "y") {
  return fmt::format(R"(
input rows: float16[24, 96]
input m: float16[1, 1, 1, 24]
const weights: float16[96, 96] = random(1, -1, 1)
const factor: float16[] = [0.25]
qkv = matmul(rows, weights)
q1 = slice(qkv) {{begin: [0, 0], extents: [24, 32]}}
q2 = reshape(q1) {{shape: [1, 24, 2, 16]}}
q = transpose(q2) {{axes: [0, 2, 1, 3]}}
k1 = slice(qkv) {{begin: [0, 32], extents: [24, 32]}}
k2 = reshape(k1) {{shape: [1, 24, 2, 16]}}
k = transpose(k2) {{axes: [0, 2, 1, 3]}}
v1 = slice(qkv) {{begin: [0, 64], extents: [24, 32]}}
v2 = reshape(v1) {{shape: [1, 24, 2, 16]}}
v = transpose(v2) {{axes: [0, 2, 1, 3]}}
s = matmul(q, k) {{transpose_b: 1}}
{}
{}
o = matmul(w, v)
o1 = transpose(o) {{axes: [0, 2, 1, 3]}}
o2 = reshape(o1) {{shape: [24, 32]}}
const back: float16[32, 96] = random(3, -1, 1)
y = matmul(o2, back)
output {})",
                     scores, softmax, outputs);
}

constexpr PartitionOptions kWithAttention{
    .prologues = true, .second_outputs = true, .attention = true};
constexpr std::string_view kMovesOfHeads = "q1 q2 q k1 k2 k v1 v2 v";

TEST(PartitionTest, AttentionIsOneGroupIfAskedFor) {
  EXPECT_THAT(Groups(Heads(), kWithAttention),
              ElementsAre("qkv", fmt::format("{} s x w o o1", kMovesOfHeads), "o2", "y"));
  EXPECT_THAT(Groups(Heads(), kOwnWay),
              ElementsAre("qkv", "q1 q2 q k1 k2 k s x", "w", "v1 v2 v o", "o1 o2 y"));
  const Graph graph = ParsedGraph(Heads());
  const std::vector<KernelGroup> groups = PartitionIntoKernels(graph, kWithAttention);
  EXPECT_FALSE(groups[0].is_attention);
  EXPECT_TRUE(groups[1].is_attention);
  EXPECT_EQ(graph.value(graph.node(groups[1].anchor).outputs[0]).name, "s");
}

TEST(PartitionTest, AttentionTakesWhatItsScoresGoThrough) {
  const auto attention = [](std::string_view scores) {
    return Groups(Heads(scores), kWithAttention)[1];
  };
  EXPECT_EQ(attention("a = div(s, factor)\nx = add(a, m)"),
            fmt::format("{} s a x w o o1", kMovesOfHeads));
  EXPECT_EQ(attention("a = cast(s) {to: float32}\nb = tanh(a)\nx = cast(b) {to: float16}"),
            fmt::format("{} s a b x w o o1", kMovesOfHeads));
}

TEST(PartitionTest, AttentionWhoseScoresOthersReadIsCutAsEver) {
  const auto has_attention = [](const std::string& text) {
    const Graph graph = ParsedGraph(text);
    return std::ranges::any_of(PartitionIntoKernels(graph, kWithAttention),
                               [](const KernelGroup& group) { return group.is_attention; });
  };
  EXPECT_TRUE(has_attention(Heads()));
  const std::string_view scale = "x = mul(s, factor)", softmax = "w = softmax(x)";
  EXPECT_FALSE(has_attention(Heads(scale, softmax, "y, s"))) << "scores are an output";
  EXPECT_FALSE(has_attention(Heads(scale, softmax, "y, x")));
  EXPECT_FALSE(has_attention(Heads(scale, softmax, "y, w"))) << "weights are an output";
  EXPECT_FALSE(has_attention(Heads("x = mul(s, s)"))) << "scores are read twice";
  EXPECT_FALSE(has_attention(Heads("x = mul(s, factor)\nz = relu(s)", softmax, "y, z")))
      << "scores have two readers";
  EXPECT_FALSE(has_attention(Heads(scale, "w = softmax(x) {axis: 2}"))) << "not over the keys";
  EXPECT_FALSE(has_attention(Heads(scale, "w = relu(x)"))) << "no softmax";
  const auto guarded = [&](std::string_view last) {
    return Heads(scale, fmt::format("const zero: float16[] = [0.0]\nconst one: float16[] = [1.0]\n"
                                    "a = softmax(x)\nn = is_nan(a)\n{}",
                                    last));
  };
  EXPECT_TRUE(has_attention(guarded("w = where(n, zero, a)"))) << "weights that are NaN are 0";
  EXPECT_FALSE(has_attention(guarded("w = where(n, one, a)")));
  EXPECT_FALSE(has_attention(guarded("w = where(n, a, zero)")));
  EXPECT_FALSE(has_attention(guarded("w = where(n, zero, x)"))) << "the choice is of other weights";
  EXPECT_FALSE(has_attention(Heads(scale, "a = softmax(x)\nw = relu(a)")))
      << "weights that do not add up to 1";
}

TEST(PartitionTest, AttentionEndsWhereOthersReadItsValues) {
  EXPECT_THAT(Groups(Heads("x = mul(s, factor)", "w = softmax(x)", "y, o"), kWithAttention),
              ElementsAre("qkv", fmt::format("{} s x w o", kMovesOfHeads), "o1 o2 y"));
}

// Keys lie in columns, and queries and keys are scaled, as in models of ONNX.
TEST(PartitionTest, AttentionReadsItsInputsWhereTheyLie) {
  constexpr std::string_view kText = R"(
input rows: float32[24, 64]
input values: float32[24, 2, 24]
const factor: float32[] = [0.25]
q1 = reshape(rows) {{shape: [24, 2, 32]}}
q2 = transpose(q1) {{axes: [1, 0, 2]}}
q = mul(q2, factor)
k1 = reshape(rows) {{shape: [24, 2, 32]}}
k2 = transpose(k1) {{axes: [1, 2, 0]}}
k = mul(k2, factor)
{}
s = matmul(q, k)
w = softmax(s)
y = matmul(w, v)
output y)";
  EXPECT_THAT(Groups(fmt::format(kText, "v = transpose(values) {axes: [1, 0, 2]}"), kWithAttention),
              ElementsAre("q1 q2 q k1 k2 k v s w y"));
  EXPECT_THAT(Groups(fmt::format(kText, "v = transpose(values) {axes: [1, 2, 0]}"), kWithAttention),
              ElementsAre("q1 q2 q k1 k2 k v s w y"))
      << "values that lie in columns";
  EXPECT_THAT(
      Groups(fmt::format(kText,
                         "v1 = slice(values) {begin: [0, 0, 0], extents: [24, 2, 12], strides: "
                         "[1, 1, 2]}\nv = transpose(v1) {axes: [1, 0, 2]}"),
             kWithAttention),
      ElementsAre("v1", "q1 q2 q k1 k2 k v s w y"))
      << "every second element of a row";
}

TEST(PartitionTest, AProductIsPartOfOneAttention) {
  EXPECT_THAT(Groups(R"(
input a: float32[16, 16]
input b: float32[16, 16]
s = matmul(a, b)
w = softmax(s)
o = matmul(w, b)
v = softmax(o)
y = matmul(v, b)
output y)",
                     kWithAttention),
              ElementsAre("s w o", "v", "y"));
}

TEST(PartitionTest, BranchesThatMeetAgainJoin) {
  EXPECT_THAT(Groups(R"(
input x: float32[4, 8]
const w: float32[8, 8] = random(1, -1, 1)
p = matmul(x, w)
g = sigmoid(p)
y = mul(p, g)
output y)"),
              ElementsAre("p g y"));
}

TEST(PartitionTest, TheFirstOfTwoProductsTakesTheirSum) {
  EXPECT_THAT(Groups(R"(
input x: float32[4, 8]
const w: float32[8, 8] = random(1, -1, 1)
const v: float32[8, 8] = random(2, -1, 1)
p = matmul(x, w)
q = matmul(x, v)
s = add(p, q)
y = relu(s)
output y)"),
              ElementsAre("q", "p s y"));
}

TEST(PartitionTest, ElementwiseNodesBeforeAProductStayOutside) {
  EXPECT_THAT(Groups(R"(
input x: float32[4, 8]
const w: float32[8, 8] = random(1, -1, 1)
a = relu(x)
b = tanh(a)
y = matmul(b, w)
output y)"),
              ElementsAre("a b", "y"));
}

TEST(PartitionTest, AnOutputEndsItsGroup) {
  EXPECT_THAT(Groups(R"(
input x: float32[4, 8]
const w: float32[8, 8] = random(1, -1, 1)
p = matmul(x, w)
y = relu(p)
output p, y)"),
              ElementsAre("p", "y"));
}

TEST(PartitionTest, ASideInputOfAnEpilogueJoinsIt) {
  EXPECT_THAT(Groups(R"(
input x: float32[4, 8]
input r: float32[4, 8]
const w: float32[8, 8] = random(1, -1, 1)
p = matmul(x, w)
a = relu(r)
y = add(p, a)
output y)"),
              ElementsAre("p a y"));
}

// A group comes after the groups that it reads.
TEST(PartitionTest, GroupsStandInAnOrderInWhichTheyCanRun) {
  const Graph graph = ParsedGraph(R"(
input x: float32[4, 8]
const w: float32[8, 8] = random(1, -1, 1)
p = matmul(x, w)
a = relu(p)
b = tanh(x)
q = matmul(b, w)
c = add(q, a)
d = add(a, c)
output d)");
  std::set<ValueId> made(graph.inputs().begin(), graph.inputs().end());
  for (const KernelGroup& group : PartitionIntoKernels(graph)) {
    const std::set<int> own(group.nodes.begin(), group.nodes.end());
    for (int node : group.nodes) {
      for (ValueId id : graph.node(node).inputs) {
        const Value& value = graph.value(id);
        EXPECT_TRUE(value.constant != nullptr || own.contains(value.producer) || made.contains(id))
            << value.name;
      }
    }
    made.insert(group.outputs.begin(), group.outputs.end());
  }
}

}  // namespace
}  // namespace kiln::graph
