#include "client/network.h"

#include "base/file/file.h"
#include "base/status_testing.h"
#include "compiler/dag/packed_inputs.h"
#include "compiler/dag/text.h"
#include "graph/text.h"

namespace kiln::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

target::Target Cuda() { return *target::ParseTarget("cuda -arch=sm_90"); }
target::Target Llvm() { return *target::ParseTarget("llvm"); }

TEST(NetworkTest, NetworksByName) {
  ASSERT_OK_AND_ASSIGN(const graph::Graph network,
                       LoadNetwork({.what = "network:resnet-18", .batch = 2}));
  EXPECT_EQ(network.value(network.inputs()[0]).type.shape, (std::vector<int64_t>{2, 224, 224, 3}));
  EXPECT_THAT(LoadNetwork({.what = "network:resnet-81"}),
              StatusIs(StatusCode::kNotFound, HasSubstr("did you mean resnet-18")));
  EXPECT_THAT(LoadNetwork({.what = "network:mlp", .layout = "chwn"}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected nhwc or nchw")));
}

// Returns the shape of the placeholder of this name; empty: there is none.
std::vector<int64_t> ShapeOf(const dag::Dag& dag, std::string_view name) {
  const std::vector<std::string> names = dag::DisplayNames(dag);
  for (const dag::Tensor& argument : dag.arguments()) {
    if (dag::TensorName(dag, names, argument) == name) return dag.shape(argument);
  }
  return {};
}

// The preparation names the Winograd weights, and not a sum before the convolution.
TEST(NetworkTest, TasksWithAlternatives) {
  ASSERT_OK_AND_ASSIGN(const graph::Graph network, LoadNetwork({.what = "network:resnet-18"}));
  ASSERT_OK_AND_ASSIGN(const auto direct, TuneTasks(network, Cuda(), {}));
  ASSERT_OK_AND_ASSIGN(const auto all, TuneTasks(network, Cuda(), {.variants = Variants::kAll}));
  ASSERT_EQ(direct.size(), all.size());
  int alternatives = 0;
  for (const NetworkTuneTask& task : all) {
    if (task.variants.size() == 1) continue;
    ++alternatives;
    EXPECT_EQ(task.variants[0].name, "direct");
    const std::string& preparation = task.variants[1].preparation;
    EXPECT_THAT(preparation, HasSubstr(" = winograd_weights tile="));
    const std::string weights = preparation.substr(0, preparation.find(' '));
    EXPECT_EQ(ShapeOf(*task.variants[1].dag, weights).size(), 4u) << preparation;
    EXPECT_EQ(ShapeOf(*task.variants[1].dag, weights)[0],
              ShapeOf(*task.variants[1].dag, weights)[1]);
  }
  EXPECT_EQ(alternatives, 12);
}

// The tasks are those of the network that was made in float16, but for what stays float32.
TEST(NetworkTest, AFileIsMadeNarrow) {
  ASSERT_OK_AND_ASSIGN(const graph::Graph network, LoadNetwork({.what = "network:bert-base"}));
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("network_test"));
  const std::string path = folder.Join("bert.graph");
  ASSERT_OK(WriteFile(path, graph::PrintGraph(network)));
  const NetworkArguments arguments{.what = path, .dtype = "float16"};
  ASSERT_OK_AND_ASSIGN(const graph::Graph narrow, LoadNetwork(arguments));
  for (size_t i = 0; i < network.inputs().size(); ++i)
    EXPECT_EQ(narrow.value(narrow.inputs()[i]).type, network.value(network.inputs()[i]).type);
  EXPECT_EQ(narrow.value(narrow.outputs()[0]).type, network.value(network.outputs()[0]).type);
  ASSERT_OK_AND_ASSIGN(const graph::Graph made,
                       LoadNetwork({.what = "network:bert-base", .dtype = "float16"}));
  ASSERT_OK_AND_ASSIGN(const auto of_made, TuneTasks(made, Cuda(), {}));
  ASSERT_OK_AND_ASSIGN(const auto of_file, TuneTasks(narrow, Cuda(), {}));
  ASSERT_EQ(of_file.size(), of_made.size());
  int same = 0;
  for (size_t i = 0; i < of_made.size(); ++i) {
    same +=
        dag::PrintDag(*of_made[i].variants[0].dag) == dag::PrintDag(*of_file[i].variants[0].dag);
    EXPECT_EQ(of_file[i].weight, of_made[i].weight);
  }
  EXPECT_GE(same, static_cast<int>(of_made.size()) - 2) << "the first and the last one";
  EXPECT_THAT(LoadNetwork({.what = path, .dtype = "float31"}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("float31")));
  EXPECT_THAT(LoadNetwork({.what = path, .dtype = "int8"}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected float16 or bfloat16")));
}

// Each of bert-base's twelve attentions is one task on GPUs. It is three tasks on CPUs, and if the
// tasks are to be TVM's (kWinograd).
TEST(NetworkTest, AttentionIsATask) {
  ASSERT_OK_AND_ASSIGN(const graph::Graph network,
                       LoadNetwork({.what = "network:bert-base", .dtype = "float16"}));
  const auto weights = [&](const target::Target& target, Variants variants,
                           std::string_view description) {
    const auto tasks = TuneTasks(network, target, {.variants = variants});
    double weight = 0;
    for (const NetworkTuneTask& task : *tasks) {
      if (task.description.starts_with(description)) weight += task.weight;
    }
    return weight;
  };
  constexpr std::string_view kAttention =
      "attention: matmul 1,12,128,64 x 1,12,128,64 + mul + softmax + matmul";
  for (const Variants variants : {Variants::kDirect, Variants::kAll}) {
    EXPECT_EQ(weights(Cuda(), variants, kAttention), 12);
    EXPECT_EQ(weights(Cuda(), variants, "softmax"), 0);
    EXPECT_EQ(weights(Llvm(), variants, kAttention), 0);
    EXPECT_EQ(weights(Llvm(), variants, "softmax"), 12);
  }
  EXPECT_EQ(weights(Cuda(), Variants::kWinograd, "softmax"), 12);
}

// The weights lie along the sum whether the architecture is known or not, so that tuned records are
// found at compilation.
TEST(NetworkTest, WeightsOfTf32LieAlongTheSum) {
  ASSERT_OK_AND_ASSIGN(const graph::Graph network, LoadNetwork({.what = "network:resnet-18"}));
  const auto convolutions = [&](std::string_view target) {
    const auto tasks = TuneTasks(network, *target::ParseTarget(target), {});
    std::vector<std::string> found;
    for (const NetworkTuneTask& task : *tasks) {
      if (task.description.starts_with("conv 1,56,56,64 x")) found.push_back(task.description);
    }
    return found;
  };
  const std::vector<std::string> usual = convolutions("cuda -arch=sm_90");
  const std::vector<std::string> along = convolutions("cuda -arch=sm_90 -math=tf32");
  EXPECT_THAT(usual, testing::Contains(HasSubstr("x 3,3,64,64")));
  EXPECT_THAT(along, testing::Contains(HasSubstr("x 64,3,3,64")));
  EXPECT_THAT(along, testing::Not(testing::Contains(HasSubstr("x 3,3,64,64"))));
  EXPECT_EQ(convolutions("cuda -math=tf32"), along);
  EXPECT_THAT(convolutions("llvm"), testing::Contains(HasSubstr("x 3,3,64,64")));
}

TEST(NetworkTest, SimpleTasksAreLeftOutUnlessAskedFor) {
  ASSERT_OK_AND_ASSIGN(const graph::Graph network, LoadNetwork({.what = "network:resnet-18"}));
  const auto tasks = [&](Variants variants, bool include_simple) {
    return TuneTasks(network, Cuda(), {.variants = variants, .include_simple = include_simple})
        ->size();
  };
  EXPECT_EQ(tasks(Variants::kDirect, true), tasks(Variants::kDirect, false));
  EXPECT_GT(tasks(Variants::kWinograd, true), tasks(Variants::kWinograd, false));
}

// Images in another layout lead to the same convolutions.
TEST(NetworkTest, LayoutsLeadToTheSameTasks) {
  const auto keys = [](const std::string& layout) {
    std::vector<std::string> descriptions;
    const auto network = LoadNetwork({.what = "network:resnet-18", .layout = layout});
    const auto tasks = TuneTasks(*network, Cuda(), {.variants = Variants::kWinograd});
    for (const NetworkTuneTask& task : *tasks) descriptions.push_back(task.description);
    return descriptions;
  };
  EXPECT_EQ(keys("nchw"), keys("nhwc"));
}

TEST(NetworkTest, ConstantsArePackedWhereAskedFor) {
  ASSERT_OK_AND_ASSIGN(const graph::Graph mlp, LoadNetwork({.what = "network:mlp"}));
  for (const bool pack : {false, true}) {
    ASSERT_OK_AND_ASSIGN(const auto tasks, TuneTasks(mlp, Llvm(), {.pack_constants = pack}));
    std::vector<size_t> packed;
    for (const NetworkTuneTask& task : tasks)
      packed.push_back(dag::PackedInputs(*task.variants[0].dag).size());
    // The network has three layers and a softmax.
    EXPECT_THAT(packed, pack ? ElementsAre(1, 1, 1, 0) : ElementsAre(0, 0, 0, 0));
  }
}

TEST(NetworkTest, LayoutRewriteOfATarget) {
  EXPECT_EQ(*ParseLayoutRewrite("", Llvm()), true);
  EXPECT_EQ(*ParseLayoutRewrite("", Cuda()), false);
  EXPECT_EQ(*ParseLayoutRewrite("", *target::ParseTarget("null")), false);
  EXPECT_EQ(*ParseLayoutRewrite("none", Llvm()), false);
  EXPECT_EQ(*ParseLayoutRewrite("pretransformed", Llvm()), true);
  EXPECT_EQ(*ParseLayoutRewrite("pretransformed", Cuda()), true);
  EXPECT_THAT(ParseLayoutRewrite("insert", Llvm()),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected none or pretransformed")));
}

TEST(NetworkTest, TextsOfFiles) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("network_test"));
  const std::string path = folder.Join("net.graph");
  ASSERT_OK(WriteFile(path, "input x: float32[2, 3]\ny = relu(x)\noutput y\n"));
  ASSERT_OK_AND_ASSIGN(const graph::Graph network, LoadNetwork({.what = path}));
  EXPECT_EQ(network.num_nodes(), 1);
  ASSERT_OK_AND_ASSIGN(const std::string text,
                       NetworkText(network, Cuda(), Variants::kDirect, "all"));
  EXPECT_THAT(text, HasSubstr("y: float32[2, 3] = relu(x)"));
  EXPECT_THAT(NetworkText(network, Cuda(), Variants::kDirect, "none"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected one of: all, dead-code")));
}

TEST(NetworkTest, ErrorsNameTheFileOnce) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("network_test"));
  ASSERT_OK(WriteFile(folder.Join("no.onnx"), "not a model"));
  ASSERT_OK(WriteFile(folder.Join("no.graph"), "not a graph"));
  for (const char* name : {"none.onnx", "no.onnx", "no.graph"}) {
    const std::string path = folder.Join(name);
    const Status status = LoadNetwork({.what = path}).status();
    const std::string message(Message(status));
    EXPECT_FALSE(status.ok());
    ASSERT_THAT(message, HasSubstr(path));
    EXPECT_EQ(message.find(path), message.rfind(path)) << message;
  }
}

}  // namespace
}  // namespace kiln::client
