#include "graph/passes/narrow_floats.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status_testing.h"
#include "graph/evaluate.h"
#include "graph/op_cases_testing.h"
#include "graph/passes/passes.h"
#include "graph/text_testing.h"
#include "graph/verify.h"

namespace kiln::graph {
namespace {

using ::testing::HasSubstr;

NarrowedNetwork Narrowed(const Graph& graph, ir::Type type = ir::kFloat16) {
  StatusOr<NarrowedNetwork> narrowed = NarrowFloats(graph, type);
  KILN_CHECK(narrowed.ok(), "{}", std::string(narrowed.status().message()));
  const Status sound = Verify(narrowed->graph);
  KILN_CHECK(sound.ok(), "{}\n{}", std::string(sound.message()), PrintGraph(narrowed->graph));
  return *std::move(narrowed);
}

std::vector<ir::NDArray> RandomInputsOf(const Graph& graph, double scale = 1) {
  std::vector<ir::NDArray> inputs;
  for (ValueId id : graph.inputs()) {
    const TensorType& type = graph.value(id).type;
    ir::NDArray& input = inputs.emplace_back(type.type, type.shape);
    input.FillRandom(static_cast<uint64_t>(id) + 3, ir::RandomKind::kUniform, 3);
    for (int64_t i = 0; scale != 1 && i < input.num_elements(); ++i)
      input.SetDouble(i, scale * input.GetDouble(i));
  }
  return inputs;
}

// Expects that both compute the same up to a part of the largest value of each output.
void ExpectClose(const Graph& wide, const Graph& narrow, std::span<const ir::NDArray> inputs,
                 double tolerance) {
  ASSERT_OK_AND_ASSIGN(const auto want, Evaluate(wide, inputs));
  ASSERT_OK_AND_ASSIGN(const auto got, Evaluate(narrow, inputs));
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    ASSERT_EQ(got[k].type(), want[k].type());
    double largest = 0, difference = 0;
    for (int64_t i = 0; i < want[k].num_elements(); ++i) {
      largest = std::max(largest, std::abs(want[k].GetDouble(i)));
      const double d = std::abs(got[k].GetDouble(i) - want[k].GetDouble(i));
      difference = std::isnan(d) ? d : std::max(difference, d);
      if (std::isnan(d)) break;
    }
    EXPECT_LE(difference, tolerance * largest) << "output " << k << "\n" << PrintGraph(narrow);
  }
}

// Returns the type of the value of that name.
std::string TypeOf(const Graph& graph, std::string_view name) {
  for (const Value& value : graph.values()) {
    if (value.name == name) return std::string(ir::TypeName(value.type.type));
  }
  return "no such value";
}

TEST(NarrowFloatsTest, ANetworkOfConvolutionsIsNarrowBetweenItsInputsAndOutputs) {
  for (const std::string_view text : {kSmallImageNetwork, kTwoResidualUnits}) {
    const Graph graph = ParsedGraph(text);
    const NarrowedNetwork narrowed = Narrowed(graph);
    EXPECT_TRUE(narrowed.wide.empty());
    EXPECT_GE(narrowed.narrow, 5);
    ASSERT_EQ(narrowed.graph.inputs().size(), graph.inputs().size());
    for (size_t k = 0; k < graph.outputs().size(); ++k) {
      const Value &now = narrowed.graph.value(narrowed.graph.outputs()[k]),
                  &before = graph.value(graph.outputs()[k]);
      EXPECT_EQ(now.type, before.type);
      EXPECT_EQ(now.name, before.name);
    }
    ExpectClose(graph, narrowed.graph, RandomInputsOf(graph), 5e-3);
  }
}

TEST(NarrowFloatsTest, ResultsAreNotThoseOfFloat32) {
  const Graph graph = ParsedGraph(kSmallImageNetwork);
  const Graph narrow = Narrowed(graph).graph, rough = Narrowed(graph, ir::kBFloat16).graph;
  const auto inputs = RandomInputsOf(graph);
  ASSERT_OK_AND_ASSIGN(const auto want, Evaluate(graph, inputs));
  ASSERT_OK_AND_ASSIGN(const auto half, Evaluate(narrow, inputs));
  ASSERT_OK_AND_ASSIGN(const auto brain, Evaluate(rough, inputs));
  EXPECT_NE(half[0], want[0]);
  EXPECT_NE(half[0], brain[0]);
  ExpectClose(graph, rough, inputs, 4e-2);
}

// The squares of 300 and their sum are beyond the range of float16.
TEST(NarrowFloatsTest, ANormOfLargeValuesStaysFloat32) {
  const Graph graph = ParsedGraph(R"(
input x: float32[4, 64]
const w: float32[64, 32] = random(1, -1, 1)
const two: float32[] = [2]
const epsilon: float32[] = [0.000001]
h = relu(x)
s = power(h, two)
m = reduce_mean(s) {axes: [1], keep_dims: 1}
e = add(m, epsilon)
a = add(e, e)
r = sqrt(a)
n = div(h, r)
y = matmul(n, w)
output y)");
  const NarrowedNetwork narrowed = Narrowed(graph);
  EXPECT_EQ(narrowed.wide, (std::map<std::string, int>{
                               {"add", 2}, {"power", 1}, {"reduce_mean", 1}, {"sqrt", 1}}));
  for (const char* name : {"s", "m", "e", "a", "r"})
    EXPECT_EQ(TypeOf(narrowed.graph, name), "float32") << name;
  for (const char* name : {"h", "n"}) EXPECT_EQ(TypeOf(narrowed.graph, name), "float16") << name;
  ExpectClose(graph, narrowed.graph, RandomInputsOf(graph, 1000), 5e-3);
}

TEST(NarrowFloatsTest, AMaskBeyondTheRangeIsLimited) {
  const Graph graph = ParsedGraph(R"(
input q: float32[2, 5, 8]
input k: float32[2, 8, 5]
input v: float32[2, 5, 8]
input mask: int64[1, 1, 5]
const one: float32[] = [1]
const lowest: float32[] = [-3.4028234663852886e+38]
f = cast(mask) {to: float32}
i = sub(one, f)
b = mul(i, lowest)
s = matmul(q, k)
t = add(s, b)
p = softmax(t)
y = matmul(p, v)
output y)");
  for (const ir::Type type : {ir::kFloat16, ir::kBFloat16}) {
    const NarrowedNetwork narrowed = Narrowed(graph, type);
    EXPECT_EQ(narrowed.wide.count("softmax"), 0u);
    EXPECT_EQ(narrowed.wide.count("matmul"), 0u);
    EXPECT_EQ(TypeOf(narrowed.graph, "b"), "float32");
    EXPECT_EQ(TypeOf(narrowed.graph, "t"), ir::TypeName(type));
    std::vector<ir::NDArray> inputs = RandomInputsOf(graph);
    for (const int kept : {5, 3, 1, 0}) {  // with none all keys count alike
      for (int64_t i = 0; i < 5; ++i) inputs[3].SetDouble(i, i < kept);
      if (kept == 0) continue;
      ExpectClose(graph, narrowed.graph, inputs, type == ir::kFloat16 ? 5e-3 : 4e-2);
    }
    ASSERT_OK_AND_ASSIGN(const auto outputs, Evaluate(narrowed.graph, inputs));
    for (int64_t i = 0; i < outputs[0].num_elements(); ++i)
      EXPECT_TRUE(std::isfinite(outputs[0].GetDouble(i))) << "nothing is kept";
  }
}

// Angles of position 5,000 have an error of two whole turns in float16.
TEST(NarrowFloatsTest, AnglesOfPositionsStayFloat32) {
  const Graph graph = ParsedGraph(R"(
input positions: int64[1, 6]
input x: float32[6, 8]
const frequencies: float32[8, 1] = random(1, 0.5, 1)
const first: float32[] = [4997]
f = cast(positions) {to: float32}
a = add(f, first)
g = matmul(frequencies, a)
t = transpose(g) {axes: [1, 0]}
c = cos(t)
y = mul(x, c)
z = matmul(y, t) {transpose_b: 1}
output y)");
  const NarrowedNetwork narrowed = Narrowed(graph);
  for (const char* name : {"f", "a", "g", "t", "c"})
    EXPECT_EQ(TypeOf(narrowed.graph, name), "float32") << name;
  ExpectClose(graph, narrowed.graph, RandomInputsOf(graph), 5e-3);
}

TEST(NarrowFloatsTest, AComparisonReadsTheNarrowValue) {
  const Graph graph = ParsedGraph(R"(
input x: float32[4, 8]
const w: float32[8, 8] = random(1, -1, 1)
const nought: float32[] = [0]
h = matmul(x, w)
g = greater(h, nought)
y = where(g, h, nought)
output y, g)");
  const NarrowedNetwork narrowed = Narrowed(graph);
  EXPECT_TRUE(narrowed.wide.empty());
  int casts = 0;
  for (const Node& node : narrowed.graph.nodes()) casts += node.op->name == "cast";
  EXPECT_EQ(casts, 2) << "of the input and of the output\n" << PrintGraph(narrowed.graph);
}

// Every operator: a network of it alone is sound, has the types that it had, and computes nearly
// the same. Integers and choices may flip where an input is rounded.
TEST(NarrowFloatsTest, EveryOperatorHasANetworkOfTheSameTypes) {
  for (const OpCase& each : SmallOpCases()) {
    SCOPED_TRACE(each.Name());
    const Graph graph = each.Build();
    for (const ir::Type type : {ir::kFloat16, ir::kBFloat16}) {
      ASSERT_OK_AND_ASSIGN(const NarrowedNetwork narrowed, NarrowFloats(graph, type));
      EXPECT_OK(Verify(narrowed.graph));
      ASSERT_EQ(narrowed.graph.outputs().size(), graph.outputs().size());
      for (size_t k = 0; k < graph.outputs().size(); ++k)
        EXPECT_EQ(narrowed.graph.value(narrowed.graph.outputs()[k]).type,
                  graph.value(graph.outputs()[k]).type);
      EXPECT_OK(RunPasses(narrowed.graph, {}, {.verify = true}).status());
    }
  }
}

TEST(NarrowFloatsTest, OtherTypesAreRefused) {
  EXPECT_THAT(
      std::string(NarrowFloats(ParsedGraph(kSmallImageNetwork), ir::kInt8).status().message()),
      HasSubstr("float32 as int8, expected float16 or bfloat16"));
}

}  // namespace
}  // namespace kiln::graph
