#include "frontend/zoo/zoo.h"

#include <fstream>
#include <map>
#include <set>

#include "absl/strings/str_split.h"
#include "base/process/cpu_time.h"
#include "base/status_testing.h"
#include "compiler/ir/ndarray.h"
#include "graph/evaluate.h"
#include "graph/text.h"

namespace kiln::frontend {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Graph Made(std::string_view name, const ZooOptions& options = {}) {
  StatusOr<Graph> graph = MakeZooNetwork(name, options);
  KILN_CHECK(graph.ok(), "{}", Message(graph.status()));
  return *std::move(graph);
}

std::string Described(const Graph& graph, ValueId id) {
  return fmt::format("{}: {}", graph.value(id).name, graph::TypeText(graph.value(id).type));
}

std::vector<std::string> Described(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> texts;
  for (ValueId id : ids) texts.push_back(Described(graph, id));
  return texts;
}

bool IsStatistic(const graph::Value& value) {
  return value.name.ends_with("_mean") || value.name.ends_with("_variance");
}

// Counts the learned parameters: weights, biases and scales. These are random; other constants are
// fixed. Means and variances of batch norms are measured, and do not count.
int64_t Parameters(const Graph& graph) {
  int64_t count = 0;
  for (const graph::Value& value : graph.values()) {
    if (value.constant == nullptr || !value.constant->random() || IsStatistic(value)) continue;
    count += value.type.num_elements();
  }
  return count;
}

struct Expected {
  std::string name;
  int64_t parameters;
  // The first input.
  std::string input;
  std::string output;

  friend void PrintTo(const Expected& expected, std::ostream* out) { *out << expected.name; }
};

constexpr std::string_view kImage = "data: float32[1, 224, 224, 3]";
constexpr std::string_view kProbabilities = "probabilities: float32[1, 1000]";

// The counts are those of the literature. Residual networks that normalize before they convolve
// differ a little from those that normalize afterwards: the batch norms of a unit have the width of
// their input, the images are shifted, and the very first unit has a convolution in its shortcut.
const std::vector<Expected>& AllExpected() {
  static const std::vector<Expected> all = [] {
    const std::string image(kImage), classes(kProbabilities);
    return std::vector<Expected>{
        {"resnet-18", 11'691'947, image, classes},
        {"resnet-34", 21'800'107, image, classes},
        {"resnet-50", 25'549'483, image, classes},
        {"resnet-101", 44'541'611, image, classes},
        {"resnet-152", 60'185'259, image, classes},
        {"resnet3d-18", 33'681'707, "data: float32[1, 16, 112, 112, 3]", classes},
        {"mobilenet", 4'231'976, image, classes},
        {"mobilenet_v2", 3'504'872, image, classes},
        {"squeezenet_v1.1", 1'235'496, image, classes},
        {"inception_v3", 23'834'568, "data: float32[1, 299, 299, 3]", classes},
        {"vgg-16", 138'357'544, image, classes},
        {"densenet-121", 7'978'856, image, classes},
        {"bert-base", 109'482'240, "ids: int64[1, 128]", "last_hidden_state: float32[1, 128, 768]"},
        {"distilbert", 66'362'880, "ids: int64[1, 128]", "last_hidden_state: float32[1, 128, 768]"},
        {"gpt2-small-prefill", 124'439'808, "ids: int64[1, 128]", "logits: float32[1, 50257]"},
        {"gpt2-small-decode", 124'439'808, "ids: int64[1, 1]", "logits: float32[1, 50257]"},
        {"vit-b-16", 86'567'656, image, classes},
        {"mlp", 535'818, "data: float32[1, 784]", "probabilities: float32[1, 10]"},
    };
  }();
  return all;
}

TEST(ZooTest, NetworksAreThoseOfTheTable) {
  std::vector<std::string> names, expected;
  for (const ZooNetwork& network : ZooNetworks()) names.push_back(network.name);
  for (const Expected& one : AllExpected()) expected.push_back(one.name);
  EXPECT_EQ(names, expected);
}

class EachNetworkTest : public ::testing::TestWithParam<Expected> {};

TEST_P(EachNetworkTest, HasTheParametersOfTheLiterature) {
  EXPECT_EQ(Parameters(Made(GetParam().name)), GetParam().parameters);
  EXPECT_EQ(Parameters(Made(GetParam().name, {.channels_last = false})), GetParam().parameters);
}

TEST_P(EachNetworkTest, HasItsInputsAndOutputs) {
  const Graph graph = Made(GetParam().name);
  EXPECT_EQ(Described(graph, graph.inputs()[0]), GetParam().input);
  EXPECT_EQ(Described(graph, graph.outputs()[0]), GetParam().output);
}

// The weights are never made: those of all networks would take minutes.
TEST_P(EachNetworkTest, AllFloatsAreOfTheTypeAskedForInEitherLayout) {
  for (const ir::Type dtype :
       {ir::kFloat16, ir::kBFloat16, ir::kFloat8E4M3, ir::kFloat32, ir::kFloat64}) {
    for (const bool channels_last : {false, true}) {
      const Graph graph = Made(GetParam().name, {.channels_last = channels_last, .dtype = dtype});
      for (const graph::Value& value : graph.values()) {
        if (!value.type.type.is_float()) continue;
        EXPECT_EQ(value.type.type, dtype) << value.name;
      }
    }
  }
}

TEST_P(EachNetworkTest, EveryNodeIsRead) {
  const Graph graph = Made(GetParam().name);
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    EXPECT_TRUE(graph.is_output(id) || !graph.readers(id).empty()) << Described(graph, id);
  }
}

TEST_P(EachNetworkTest, NamesAreChosen) {
  const Graph graph = Made(GetParam().name);
  for (const graph::Value& value : graph.values())
    EXPECT_EQ(value.name.find('\''), std::string::npos) << value.name;
}

TEST_P(EachNetworkTest, ItsTextMeansIt) {
  const Graph graph = Made(GetParam().name);
  ASSERT_OK_AND_ASSIGN(const Graph parsed,
                       graph::ParseGraph(graph::PrintGraph(graph), graph::NamedConstants(graph)));
  EXPECT_TRUE(graph::Equal(graph, parsed));
}

std::vector<uint64_t> Seeds(const Graph& graph) {
  std::vector<uint64_t> seeds;
  for (const graph::Value& value : graph.values()) {
    if (value.constant != nullptr && value.constant->random())
      seeds.push_back(value.constant->random()->seed);
  }
  return seeds;
}

TEST_P(EachNetworkTest, EachWeightHasASeedOfItsOwn) {
  const Graph graph = Made(GetParam().name, {.seed = 7});
  EXPECT_EQ(graph::PrintGraph(graph), graph::PrintGraph(Made(GetParam().name, {.seed = 7})));
  std::vector<uint64_t> seeds = Seeds(graph);
  for (uint64_t seed : Seeds(Made(GetParam().name, {.seed = 8}))) seeds.push_back(seed);
  EXPECT_THAT(std::set<uint64_t>(seeds.begin(), seeds.end()), SizeIs(seeds.size()));
}

TEST_P(EachNetworkTest, ScalesAndVariancesArePositive) {
  const Graph graph = Made(GetParam().name);
  for (const graph::Value& value : graph.values()) {
    if (value.constant == nullptr || !value.constant->random()) continue;
    if (!value.name.ends_with("_scale") && !value.name.ends_with("_variance")) continue;
    EXPECT_GT(value.constant->random()->low, 0) << value.name;
  }
}

TEST_P(EachNetworkTest, TakesABatch) {
  const Graph one = Made(GetParam().name), three = Made(GetParam().name, {.batch = 3});
  EXPECT_EQ(Parameters(one), Parameters(three));
  for (const auto& ids : {&Graph::inputs, &Graph::outputs}) {
    ASSERT_EQ((one.*ids)().size(), (three.*ids)().size());
    for (size_t i = 0; i < (one.*ids)().size(); ++i) {
      graph::TensorType type = one.value((one.*ids)()[i]).type;
      type.shape[0] *= 3;
      EXPECT_EQ(three.value((three.*ids)()[i]).type, type);
    }
  }
}

std::string TestName(const ::testing::TestParamInfo<Expected>& info) {
  std::string name = info.param.name;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(Zoo, EachNetworkTest, ::testing::ValuesIn(AllExpected()), TestName);

TEST(ZooTest, WritingTheLargestCostsMilliseconds) {
  const double start = ThreadCpuSeconds();
  Made("densenet-121");
  EXPECT_LT(ThreadCpuSeconds() - start, 0.5);
}

// Returns "y = op(x)" for the nodes whose names have this prefix. Constants are left out of the
// inputs.
std::vector<std::string> NodesOf(const Graph& graph, std::string_view prefix) {
  std::vector<std::string> texts;
  for (const Node& node : graph.nodes()) {
    const std::string& name = graph.value(node.outputs[0]).name;
    if (!name.starts_with(prefix)) continue;
    std::vector<std::string> inputs;
    for (ValueId id : node.inputs) {
      if (graph.value(id).constant == nullptr) inputs.push_back(graph.value(id).name);
    }
    texts.push_back(fmt::format("{} = {}({})", name, node.op->name, fmt::join(inputs, ", ")));
  }
  return texts;
}

TEST(ResnetTest, UnitsNormalizeFirst) {
  EXPECT_THAT(NodesOf(Made("resnet-18"), "stage2_unit1"),
              ElementsAre("stage2_unit1_bn1 = batch_norm(stage1_unit2_sum)",
                          "stage2_unit1_relu1 = relu(stage2_unit1_bn1)",
                          "stage2_unit1_conv1 = conv(stage2_unit1_relu1)",
                          "stage2_unit1_bn2 = batch_norm(stage2_unit1_conv1)",
                          "stage2_unit1_relu2 = relu(stage2_unit1_bn2)",
                          "stage2_unit1_conv2 = conv(stage2_unit1_relu2)",
                          "stage2_unit1_sc = conv(stage2_unit1_relu1)",
                          "stage2_unit1_sum = add(stage2_unit1_conv2, stage2_unit1_sc)"));
}

TEST(ResnetTest, BottlenecksAreThreeConvolutions) {
  EXPECT_THAT(NodesOf(Made("resnet-50"), "stage3_unit2"),
              ElementsAre("stage3_unit2_bn1 = batch_norm(stage3_unit1_sum)",
                          "stage3_unit2_relu1 = relu(stage3_unit2_bn1)",
                          "stage3_unit2_conv1 = conv(stage3_unit2_relu1)",
                          "stage3_unit2_bn2 = batch_norm(stage3_unit2_conv1)",
                          "stage3_unit2_relu2 = relu(stage3_unit2_bn2)",
                          "stage3_unit2_conv2 = conv(stage3_unit2_relu2)",
                          "stage3_unit2_bn3 = batch_norm(stage3_unit2_conv2)",
                          "stage3_unit2_relu3 = relu(stage3_unit2_bn3)",
                          "stage3_unit2_conv3 = conv(stage3_unit2_relu3)",
                          "stage3_unit2_sum = add(stage3_unit2_conv3, stage3_unit1_sum)"));
}

// Returns the number of convolutions for each "input x weight -> output".
std::map<std::string, int> Convolutions(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "conv") continue;
    const auto shape = [&](ValueId id) { return ir::ShapeText(graph.value(id).type.shape); };
    ++counts[fmt::format("{} x {} -> {}", shape(node.inputs[0]), shape(node.inputs[1]),
                         shape(node.outputs[0]))];
  }
  return counts;
}

TEST(ResnetTest, ConvolutionsAreThoseOfTvm) {
  const std::map<std::string, int> expected = {
      {"[1, 224, 224, 3] x [7, 7, 3, 64] -> [1, 112, 112, 64]", 1},
      {"[1, 56, 56, 64] x [1, 1, 64, 64] -> [1, 56, 56, 64]", 1},
      {"[1, 56, 56, 64] x [3, 3, 64, 64] -> [1, 56, 56, 64]", 4},
      {"[1, 56, 56, 64] x [1, 1, 64, 128] -> [1, 28, 28, 128]", 1},
      {"[1, 56, 56, 64] x [3, 3, 64, 128] -> [1, 28, 28, 128]", 1},
      {"[1, 28, 28, 128] x [3, 3, 128, 128] -> [1, 28, 28, 128]", 3},
      {"[1, 28, 28, 128] x [1, 1, 128, 256] -> [1, 14, 14, 256]", 1},
      {"[1, 28, 28, 128] x [3, 3, 128, 256] -> [1, 14, 14, 256]", 1},
      {"[1, 14, 14, 256] x [3, 3, 256, 256] -> [1, 14, 14, 256]", 3},
      {"[1, 14, 14, 256] x [1, 1, 256, 512] -> [1, 7, 7, 512]", 1},
      {"[1, 14, 14, 256] x [3, 3, 256, 512] -> [1, 7, 7, 512]", 1},
      {"[1, 7, 7, 512] x [3, 3, 512, 512] -> [1, 7, 7, 512]", 3},
  };
  EXPECT_EQ(Convolutions(Made("resnet-18")), expected);
}

TEST(ResnetTest, VideosHaveThreeAxes) {
  const std::map<std::string, int> convolutions = Convolutions(Made("resnet3d-18"));
  EXPECT_EQ(convolutions.at("[1, 16, 112, 112, 3] x [3, 7, 7, 3, 64] -> [1, 16, 56, 56, 64]"), 1);
  EXPECT_EQ(convolutions.at("[1, 2, 7, 7, 512] x [3, 3, 3, 512, 512] -> [1, 2, 7, 7, 512]"), 3);
}

TEST(LayoutTest, ChannelsComeFirstOrLast) {
  const auto weight = [](const Graph& graph, std::string_view name) {
    for (const graph::Value& value : graph.values()) {
      if (value.name == name) return ir::ShapeText(value.type.shape);
    }
    return std::string("none");
  };
  const Graph last = Made("mobilenet"), first = Made("mobilenet", {.channels_last = false});
  EXPECT_EQ(weight(last, "conv1_weight"), "[3, 3, 3, 32]");
  EXPECT_EQ(weight(first, "conv1_weight"), "[32, 3, 3, 3]");
  EXPECT_EQ(weight(last, "block2_depthwise_weight"), "[3, 3, 64, 1]");
  EXPECT_EQ(weight(first, "block2_depthwise_weight"), "[64, 1, 3, 3]");
  EXPECT_EQ(weight(last, "data"), "[1, 224, 224, 3]");
  EXPECT_EQ(weight(first, "data"), "[1, 3, 224, 224]");
  EXPECT_EQ(weight(last, "block13_pointwise_relu"), "[1, 7, 7, 1024]");
  EXPECT_EQ(weight(first, "block13_pointwise_relu"), "[1, 1024, 7, 7]");
}

TEST(TransformerTest, AnAttentionLayer) {
  EXPECT_THAT(
      NodesOf(Made("gpt2-small-prefill"), "layer2_"),
      ElementsAre(
          "layer2_norm1 = layer_norm(layer1_sum)", "layer2_attention_qkv = matmul(layer2_norm1)",
          "layer2_attention_qkv_biased = add(layer2_attention_qkv)",
          "layer2_attention_query = split(layer2_attention_qkv_biased)",
          "layer2_attention_query_by_token = reshape(layer2_attention_query)",
          "layer2_attention_query_heads = transpose(layer2_attention_query_by_token)",
          "layer2_attention_key_by_token = reshape(layer2_attention_key)",
          "layer2_attention_key_heads = transpose(layer2_attention_key_by_token)",
          "layer2_attention_value_by_token = reshape(layer2_attention_value)",
          "layer2_attention_value_heads = transpose(layer2_attention_value_by_token)",
          "layer2_attention_products = matmul(layer2_attention_query_heads, "
          "layer2_attention_key_heads)",
          "layer2_attention_scores = mul(layer2_attention_products)",
          "layer2_attention_masked = add(layer2_attention_scores)",
          "layer2_attention_shares = softmax(layer2_attention_masked)",
          "layer2_attention_context = matmul(layer2_attention_shares, "
          "layer2_attention_value_heads)",
          "layer2_attention_context_by_token = transpose(layer2_attention_context)",
          "layer2_attention_context_rows = reshape(layer2_attention_context_by_token)",
          "layer2_attention_out = matmul(layer2_attention_context_rows)",
          "layer2_attention_out_biased = add(layer2_attention_out)",
          "layer2_attention_sum = add(layer2_attention_out_biased, layer1_sum)",
          "layer2_norm2 = layer_norm(layer2_attention_sum)", "layer2_dense1 = matmul(layer2_norm2)",
          "layer2_dense1_biased = add(layer2_dense1)",
          "layer2_dense_gelu_tanh = gelu_tanh(layer2_dense1_biased)",
          "layer2_dense2 = matmul(layer2_dense_gelu_tanh)",
          "layer2_dense2_biased = add(layer2_dense2)",
          "layer2_sum = add(layer2_dense2_biased, layer2_attention_sum)"));
}

TEST(TransformerTest, SequencesAreAsLongAsAskedFor) {
  const Graph bert = Made("bert-base", {.batch = 2, .sequence = 20});
  EXPECT_THAT(Described(bert, bert.inputs()), ElementsAre("ids: int64[2, 20]"));
  EXPECT_THAT(Described(bert, bert.outputs()),
              ElementsAre("last_hidden_state: float32[2, 20, 768]", "pooled: float32[2, 768]"));
  const Graph gpt = Made("gpt2-small-prefill", {.sequence = 1024});
  EXPECT_THAT(Described(gpt, gpt.inputs()), ElementsAre("ids: int64[1, 1024]"));
}

TEST(TransformerTest, DecodingReadsAndGivesKeysAndValues) {
  const Graph graph = Made("gpt2-small-decode", {.batch = 2, .sequence = 30});
  const std::vector<std::string> inputs = Described(graph, graph.inputs());
  ASSERT_THAT(inputs, SizeIs(25));
  EXPECT_EQ(inputs[0], "ids: int64[2, 1]");
  EXPECT_EQ(inputs[1], "layer1_keys_cache: float32[2, 12, 30, 64]");
  EXPECT_EQ(inputs[24], "layer12_values_cache: float32[2, 12, 30, 64]");
  const std::vector<std::string> outputs = Described(graph, graph.outputs());
  ASSERT_THAT(outputs, SizeIs(25));
  EXPECT_EQ(outputs[0], "logits: float32[2, 50257]");
  EXPECT_EQ(outputs[1], "layer1_attention_key_heads: float32[2, 12, 1, 64]");
  EXPECT_EQ(outputs[24], "layer12_attention_value_heads: float32[2, 12, 1, 64]");
}

TEST(TransformerTest, NoTokenSeesThoseAfterIt) {
  const Graph graph = Made("gpt2-small-prefill", {.dtype = ir::kFloat16, .sequence = 3});
  for (const graph::Value& value : graph.values()) {
    if (value.name != "causal_mask") continue;
    for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(value.constant->At(i) < -1000, i % 3 > i / 3) << i;
  }
}

void ExpectRowsOfProbabilities(const ir::NDArray& rows, double tolerance) {
  for (int64_t row = 0; row < rows.shape()[0]; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < rows.shape()[1]; ++i) {
      const double p = rows.GetDouble(row * rows.shape()[1] + i);
      EXPECT_GT(p, 0);
      sum += p;
    }
    EXPECT_NEAR(sum, 1, tolerance);
  }
}

TEST(MlpTest, Computes) {
  for (const ir::Type dtype : {ir::kFloat32, ir::kFloat16}) {
    const Graph graph = Made("mlp", {.batch = 2, .dtype = dtype});
    ir::NDArray image(dtype, {2, 784});
    image.FillRandom(1);
    ASSERT_OK_AND_ASSIGN(const std::vector<ir::NDArray> outputs,
                         graph::Evaluate(graph, std::vector<ir::NDArray>{image}));
    ASSERT_THAT(outputs, SizeIs(1));
    ExpectRowsOfProbabilities(outputs[0], dtype == ir::kFloat32 ? 1e-6 : 5e-3);
  }
}

// docs/zoo.md has a row for each network with its name and its million parameters.
TEST(ZooTest, IsDocumented) {
  // Tests run in the root of the runfiles.
  std::ifstream file("docs/zoo.md");
  ASSERT_TRUE(file.good());
  std::vector<std::string> rows, expected;
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    if (line.starts_with("| `")) rows.push_back(fmt::format("{} | {}", cells[0], cells[2]));
  }
  for (const Expected& one : AllExpected()) {
    expected.push_back(
        fmt::format("| `{}` | {:.2f} M", one.name, static_cast<double>(one.parameters) * 1e-6));
  }
  EXPECT_EQ(rows, expected);
}

TEST(ZooTest, Refusals) {
  EXPECT_THAT(MakeZooNetwork("resnet18", {}),
              StatusIs(StatusCode::kNotFound,
                       AllOf(HasSubstr("no network 'resnet18', did you mean resnet-18"),
                             HasSubstr("there are resnet-18, resnet-34, "))));
  const auto refused = [](std::string_view name, const ZooOptions& options,
                          const std::string& message) {
    EXPECT_THAT(MakeZooNetwork(name, options),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  refused("mlp", {.batch = 0}, "batch of 0");
  refused("mlp", {.sequence = 0}, "sequence of 0 tokens");
  refused("mlp", {.dtype = ir::kInt8}, "networks of int8, expected a float type");
  refused("mlp", {.batch = int64_t{1} << 40}, "mlp: ");
  refused("bert-base", {.sequence = 513}, "bert-base: 513 tokens, there are 512 positions");
  refused("gpt2-small-prefill", {.sequence = 1025}, "1025 tokens");
  refused("gpt2-small-decode", {.sequence = 1024}, "1025 tokens");
  refused("resnet-18", {.batch = int64_t{1} << 25}, "resnet-18: ");
}

}  // namespace
}  // namespace kiln::frontend
