// Runs models that ONNX's own cases lack, by the oracle and by networks that are compiled for this
// CPU, written, loaded and run. Both must give the same outputs.
#include <fmt/format.h>

#include <cmath>

#include "base/status_testing.h"
#include "frontend/onnx/model_testing.h"
#include "graph/evaluate.h"
#include "tests/onnx/compiled.h"

namespace kiln {
namespace {

using frontend::Doubles;
using frontend::Floats;
using frontend::Ints;
using frontend::SmallFloats;
using frontend::TestModel;
using ::testing::ElementsAre;
using Arrays = std::vector<ir::NDArray>;

// Runs the model both ways; the results must agree.
Arrays RunBoth(const TestModel& model, const Arrays& inputs) {
  const StatusOr<graph::Graph> graph = model.Import();
  KILN_CHECK(graph.ok(), "{}", std::string(graph.status().message()));
  const StatusOr<Arrays> expected = graph::Evaluate(*graph, inputs);
  KILN_CHECK(expected.ok(), "{}", std::string(expected.status().message()));
  const StatusOr<Arrays> found = CompiledEvaluator()(*graph, inputs);
  KILN_CHECK(found.ok(), "{}", std::string(found.status().message()));
  EXPECT_EQ(found->size(), expected->size());
  for (size_t i = 0; i < expected->size(); ++i) {
    EXPECT_EQ((*found)[i].shape(), (*expected)[i].shape());
    EXPECT_OK(ir::Compare((*found)[i], (*expected)[i], {.relative = 1e-5, .absolute = 1e-5}));
  }
  return *found;
}

TEST(CompiledModelsTest, HundredsOfConstantsAreFoldedAtOnce) {
  TestModel model;
  model.Input("x", "float32", {4});
  std::string sum = "x";
  double expected = 1;
  for (int i = 0; i < 400; ++i) {
    // There are 400 constants, each made from three others: ((i + 1) i - i) / 64.
    const auto name = [&](const char* part) { return fmt::format("{}{}", part, i); };
    model.Initializer(name("a"), Floats({4}, std::vector<double>(4, i + 1.0)));
    model.Initializer(name("b"), Floats({}, {static_cast<double>(i)}));
    model.Initializer(name("c"), Floats({1}, {1.0 / 64}));
    model.Node("Mul", {name("a"), name("b")}, {name("d")});
    model.Node("Sub", {name("d"), name("b")}, {name("e")});
    model.Node("Mul", {name("e"), name("c")}, {name("f")});
    model.Node(i % 2 == 0 ? "Add" : "Sub", {sum, name("f")}, {name("s")});
    sum = name("s");
    expected += (i % 2 == 0 ? 1 : -1) * static_cast<double>(i) * i / 64;
  }
  model.Node("Relu", {sum}, {"r"});
  model.Node("Neg", {sum}, {"y"});
  model.Output("r");
  model.Output("y");
  ASSERT_OK_AND_ASSIGN(const graph::Graph graph, model.Import());
  // Only nodes that depend on x are left.
  EXPECT_EQ(graph.num_nodes(), 402);
  const Arrays outputs = RunBoth(model, {Floats({4}, {1, 1, 1, 1})});
  EXPECT_NEAR(outputs[1].GetDouble(2), -expected, 1e-3);
}

// Both outputs read one sum: one of them by itself, the other through another sum.
TEST(CompiledModelsTest, TwoOutputsShareAReduction) {
  TestModel model(18);
  model.Input("x", "float32", {3, 5, 40});
  model.Initializer("axis", Ints({2}));
  model.Node("ReduceSum", {"x", "axis"}, {"sum"});
  model.Node("Div", {"x", "sum"}, {"shares"});
  model.Node("Exp", {"sum"}, {"powers"});
  model.Node("ReduceMax", {"shares", "axis"}, {"largest"});
  for (const char* name : {"shares", "powers", "largest"}) model.Output(name);
  ir::NDArray x = SmallFloats({3, 5, 40}, 7);
  for (int64_t i = 0; i < x.num_elements(); ++i) x.SetDouble(i, 0.01 * (4 + x.GetDouble(i)));
  const Arrays outputs = RunBoth(model, {x});
  double sum = 0, share = 0;
  for (int64_t k = 0; k < 40; ++k) sum += x.GetDouble(k);
  for (int64_t k = 0; k < 40; ++k) share = std::max(share, x.GetDouble(k) / sum);
  EXPECT_NEAR(outputs[1].GetDouble(0), std::exp(sum), 1e-3);
  EXPECT_NEAR(outputs[2].GetDouble(0), share, 1e-5);
}

TEST(CompiledModelsTest, ImagesOfBytes) {
  TestModel model(21);
  model.Input("image", "uint8", {1, 2, 2, 3});
  model.Node("Cast", {"image"}, {"f"}, {{"to", int64_t{1}}});
  model.Node("Transpose", {"f"}, {"y"}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  model.Node("BitwiseNot", {"image"}, {"inverted"});
  model.Output("y");
  model.Output("inverted");
  const ir::NDArray image(
      ir::kUInt8, {1, 2, 2, 3},
      std::vector<double>{0, 1, 2, 127, 128, 129, 200, 201, 202, 253, 254, 255});
  const Arrays outputs = RunBoth(model, {image});
  EXPECT_THAT(Doubles(outputs[0]),
              ElementsAre(0, 127, 200, 253, 1, 128, 201, 254, 2, 129, 202, 255));
  EXPECT_THAT(Doubles(outputs[1]), ElementsAre(255, 254, 253, 128, 127, 126, 55, 54, 53, 2, 1, 0));
}

// Sums over tensors without elements are 0 and products 1. Such tensors enter and leave networks,
// too.
TEST(CompiledModelsTest, TensorsWithoutElements) {
  TestModel model(18);
  model.Input("x", "float32", {2, 0, 3});
  model.Input("z", "float32", {2, 1, 3});
  model.Initializer("axis", Ints({1}));
  model.Node("ReduceSum", {"x", "axis"}, {"sum"});
  model.Node("ReduceProd", {"x", "axis"}, {"product"});
  model.Node("ReduceMax", {"x", "axis"}, {"most"});
  model.Node("Concat", {"x", "z"}, {"all"}, {{"axis", int64_t{1}}});
  model.Node("Add", {"all", "product"}, {"y"});
  model.Node("Exp", {"x"}, {"e"});
  model.Node("Transpose", {"e"}, {"nothing"}, {{"perm", std::vector<int64_t>{2, 1, 0}}});
  for (const char* name : {"sum", "most", "y", "nothing"}) model.Output(name);
  const Arrays outputs =
      RunBoth(model, {ir::NDArray(ir::kFloat32, {2, 0, 3}), Floats({2, 1, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_THAT(Doubles(outputs[0]), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_EQ(outputs[1].GetDouble(0), -INFINITY);
  EXPECT_THAT(Doubles(outputs[2]), ElementsAre(2, 3, 4, 5, 6, 7));
  EXPECT_THAT(outputs[3].shape(), ElementsAre(3, 0, 2));
}

}  // namespace
}  // namespace kiln
