#include "graph/text.h"

#include <algorithm>

#include "base/status_testing.h"

namespace kiln::graph {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kNetwork = R"(input x: float32[2, 64]
input `odd/name`: float32[32]
const w: float32[32, 64] = random(7, -0.1, 0.1)
const bias: float32[3] = [1.0, -inf, 0.1]
const ids: int64[2] = [-1, 9223372036854775807]
const bytes: uint8[2] = [0, 255]
const large: uint64[2] = [0, 18446744073709551615]
const yes: bool[] = [true]
h: float32[2, 32] = matmul(x, w) {transpose_b: 1}
s: float32[2, 32] = add(h, `odd/name`)
y: float32[2, 32] = leaky_relu(s) {alpha: 0.2}
z: float32[2, 32] = clip(y) {max: 6.0}
output z, h, bias, ids, bytes, large, yes
)";

Graph Parsed(std::string_view text) {
  StatusOr<Graph> graph = ParseGraph(text);
  KILN_CHECK(graph.ok(), "{}", std::string(graph.status().message()));
  return *std::move(graph);
}

TEST(GraphTextTest, PrintsWhatItParsed) { EXPECT_EQ(PrintGraph(Parsed(kNetwork)), kNetwork); }

TEST(GraphTextTest, TypesOfOutputsMayBeLeftOut) {
  const Graph graph = Parsed("input x: float32[2]\ny = relu(x)\noutput y");
  EXPECT_EQ(PrintGraph(graph), "input x: float32[2]\ny: float32[2] = relu(x)\noutput y\n");
  EXPECT_TRUE(Equal(graph, Parsed(PrintGraph(graph))));
}

TEST(GraphTextTest, WordsOfStatementsAreNamesInBackquotes) {
  const std::string text =
      "input `input`: float32[2]\n`output`: float32[2] = relu(`input`)\n"
      "`_`: float32[2] = relu(`output`)\noutput `_`\n";
  EXPECT_EQ(PrintGraph(Parsed(text)), text);
}

TEST(GraphTextTest, LargeConstantsAreNamedByTheirDigest) {
  GraphBuilder builder;
  ir::NDArray array(ir::kFloat32, {100});
  array.FillRandom(1);
  const ValueId c = builder.Add("c", Constant::FromArray(array));
  ASSERT_OK_AND_ASSIGN(const ValueId y, builder.AddOne("relu", {c}, {}, "y"));
  builder.Output(y);
  ASSERT_OK_AND_ASSIGN(const Graph graph, builder.Build());
  const std::string text = PrintGraph(graph);
  EXPECT_THAT(text, HasSubstr("data("));
  EXPECT_THAT(ParseGraph(text),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("are not given beside the text")));
  ASSERT_OK_AND_ASSIGN(const Graph parsed, ParseGraph(text, NamedConstants(graph)));
  EXPECT_TRUE(Equal(graph, parsed));
}

TEST(GraphTextTest, NansOfOtherBitsAreNamedByTheirDigest) {
  const auto network = [](uint32_t bits) {
    ir::NDArray array(ir::kFloat32, {1});
    std::ranges::copy(std::as_bytes(std::span(&bits, 1)), array.mutable_bytes().begin());
    GraphBuilder builder;
    builder.Output(builder.Add("c", Constant::FromArray(array)));
    return *builder.Build();
  };
  EXPECT_THAT(PrintGraph(network(0x7fc00000)), HasSubstr("= [nan]"));
  for (uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xfff00007u}) {
    const Graph graph = network(bits);
    ASSERT_OK_AND_ASSIGN(const Graph parsed, ParseGraph(PrintGraph(graph), NamedConstants(graph)));
    EXPECT_TRUE(Equal(parsed, graph)) << bits;
  }
}

TEST(GraphTextTest, RandomConstantsAreTheSameFromTheirText) {
  const auto bytes = [](const Graph& graph) {
    const std::span<const std::byte> span = graph.value(0).constant->bytes();
    return std::vector<std::byte>(span.begin(), span.end());
  };
  const std::string text = "const w: float32[1000] = random(3, -1.0, 1.0)\noutput w\n";
  EXPECT_EQ(bytes(Parsed(text)), bytes(Parsed(text)));
  EXPECT_NE(bytes(Parsed(text)),
            bytes(Parsed("const w: float32[1000] = random(4, -1, 1) output w")));
  const Graph graph = Parsed(text);
  double sum = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    const double value = graph.value(0).constant->At(i);
    EXPECT_GE(value, -1);
    EXPECT_LE(value, 1);
    sum += value;
  }
  // Three standard deviations.
  EXPECT_LT(std::abs(sum), 60);
}

TEST(GraphTextTest, Refusals) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "no outputs"},
      {"output x", "line 1, column 8: there is no value 'x' before this"},
      {"input x: float32[2]\ninput x: float32[2]\noutput x", "there is a value 'x' already"},
      {"input x: float32[-1]\noutput x", "an extent"},
      {"input x: float33[2]\noutput x", "unknown type 'float33'"},
      {"input x: float32[2]\ny = reluu(x)\noutput y", "did you mean relu"},
      {"input x: float32[2]\ny = relu(x, x)\noutput y", "relu: got 2 inputs, expected 1"},
      {"input x: float32[2]\ny = add(x)\noutput y", "add: got 1 inputs, expected 2"},
      {"input x: float32[2]\ny = add(x, _)\noutput y", "add: input 1 is missing"},
      {"input x: float32[2]\ny = relu(x) {alpha: 1}\noutput y", "relu has no attributes"},
      {"input x: float32[2]\ny = elu(x) {alpa: 1}\noutput y", "did you mean alpha"},
      {"input x: float32[2]\ny = cast(x)\noutput y", "cast needs its attribute to"},
      {"input x: float32[2]\ny: float32[3] = relu(x)\noutput y",
       "line 2, column 1: y is float32[2], not float32[3]"},
      {"input x: float32[2]\na, b = relu(x)\noutput a", "relu makes 1 value, 2 are named"},
      {"input x: float32[2]\ninput y: float32[3]\nz = add(x, y)\noutput z",
       "add: input 1 of shape [3] does not broadcast against [2]"},
      {"input x: float32[2]\ninput y: int32[2]\nz = add(x, y)\noutput z",
       "inputs of float32 and int32"},
      {"const c: float32[2] = [1]\noutput c", "got 1 elements of 2"},
      {"const c: int8[1] = [128]\noutput c", "an element"},
      {"const c: uint8[1] = [-1]\noutput c", "an element from 0 to 255"},
      {"const c: uint64[1] = [-1]\noutput c", "an element from 0"},
      {"const c: float32[1] = random(1, 2, inf)\noutput c", "finite numbers"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(ParseGraph(text),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(std::string(message))))
        << text;
  }
}

}  // namespace
}  // namespace kiln::graph
