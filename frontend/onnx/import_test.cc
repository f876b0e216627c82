#include "frontend/onnx/import.h"

#include <fmt/format.h>

#include "base/status_testing.h"
#include "frontend/onnx/model_testing.h"
#include "graph/text.h"

namespace kiln::frontend {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> OpsOf(const graph::Graph& graph) {
  std::vector<std::string> ops;
  for (const graph::Node& node : graph.nodes()) ops.push_back(node.op->name);
  return ops;
}

TEST(ImportTest, KeepsNamesAndOrigins) {
  TestModel model;
  model.Input("x", "float32", {2, 3});
  model.Initializer("w", SmallFloats({3, 4}, 1));
  model.Initializer("b", SmallFloats({4}, 2));
  model.Node("Gemm", {"x", "w", "b"}, {"h"}).set_name("layer/fc");
  model.Node("Relu", {"h"}, {"y"});
  model.Output("y");
  ASSERT_OK_AND_ASSIGN(const graph::Graph graph, model.Import());
  EXPECT_THAT(OpsOf(graph), ElementsAre("matmul", "add", "relu"));
  EXPECT_EQ(graph.value(graph.node(1).outputs[0]).name, "h");
  EXPECT_EQ(graph.value(graph.outputs()[0]).name, "y");
  EXPECT_EQ(graph.node(0).origin, "layer/fc");
  EXPECT_EQ(graph.node(1).origin, "layer/fc");
  // The node has no name.
  EXPECT_EQ(graph.node(2).origin, "y");
  EXPECT_EQ(graph.value(graph.node(0).inputs[1]).name, "w");
}

TEST(ImportTest, OutputsKeepTheirNamesWhateverTheyAre) {
  TestModel model;
  model.Input("x", "float32", {2});
  model.Ints("three", {3});
  model.Node("Identity", {"x"}, {"same"});
  model.Node("Relu", {"x"}, {"relu"});
  model.Node("Identity", {"relu"}, {"again"});
  for (const char* name : {"same", "relu", "again", "three", "x"}) model.Output(name);
  ASSERT_OK_AND_ASSIGN(const graph::Graph graph, model.Import());
  std::vector<std::string> names;
  for (graph::ValueId id : graph.outputs()) names.push_back(graph.value(id).name);
  EXPECT_THAT(names, ElementsAre("same", "relu", "again", "three", "x"));
  EXPECT_THAT(model.Run({Floats({2}, {-1, 2})})[2], Floats({2}, {0, 2}));
}

TEST(ImportTest, ShapeArithmeticFolds) {
  // Exporters write x.reshape(x.shape[0], -1) so.
  TestModel model;
  model.Input("x", "float32", {2, 3, 4});
  model.Ints("zero", {0});
  model.Ints("rest", {-1});
  model.Node("Shape", {"x"}, {"shape"});
  model.Node("Gather", {"shape", "zero"}, {"batch"}, {{"axis", int64_t{0}}});
  model.Node("Concat", {"batch", "rest"}, {"to"}, {{"axis", int64_t{0}}});
  model.Node("Reshape", {"x", "to"}, {"y"});
  model.Output("y");
  ASSERT_OK_AND_ASSIGN(const graph::Graph graph, model.Import());
  EXPECT_THAT(OpsOf(graph), ElementsAre("reshape"));
  EXPECT_EQ(graph.value(graph.outputs()[0]).type, (graph::TensorType{ir::kFloat32, {2, 12}}));
}

TEST(ImportTest, ListsWithoutElements) {
  // The shape of a scalar is an empty list, so the concatenation has only the other elements.
  TestModel model;
  model.Input("x", "float32", {});
  model.Input("y", "float32", {6});
  model.Ints("two", {2, 3});
  model.Node("Shape", {"x"}, {"none"});
  model.Node("Concat", {"none", "two"}, {"to"}, {{"axis", int64_t{0}}});
  model.Node("Reshape", {"y", "to"}, {"z"});
  model.Node("Reshape", {"x", "none"}, {"w"});
  model.Output("z");
  model.Output("w");
  ASSERT_OK_AND_ASSIGN(const graph::Graph graph, model.Import());
  EXPECT_EQ(graph.value(graph.outputs()[0]).type.shape, (std::vector<int64_t>{2, 3}));
  model.Output("none");
  ASSERT_OK_AND_ASSIGN(const graph::Graph with_none, model.Import());
  EXPECT_EQ(with_none.value(with_none.outputs()[2]).type.shape, (std::vector<int64_t>{0}));
}

TEST(ImportTest, WhatNothingNeedsIsLeftOut) {
  TestModel model;
  model.Input("x", "float32", {1, 4});
  model.Initializer("w", SmallFloats({4, 5}, 1));
  // Only the shape of the result is read.
  model.Node("MatMul", {"x", "w"}, {"h"});
  model.Node("Shape", {"h"}, {"shape"});
  model.Node("ConstantOfShape", {"shape"}, {"y"});
  model.Node("NoSuchOperator", {"x"}, {"unused"});
  model.Output("y");
  ASSERT_OK_AND_ASSIGN(const graph::Graph graph, model.Import());
  EXPECT_EQ(graph.num_nodes(), 0);
  EXPECT_EQ(graph.inputs().size(), 1u);
  EXPECT_EQ(graph.value(graph.outputs()[0]).type.shape, (std::vector<int64_t>{1, 5}));
}

TEST(ImportTest, NodesNeedNotBeInOrder) {
  TestModel model;
  model.Input("x", "float32", {2});
  model.Node("Neg", {"h"}, {"y"});
  model.Node("Relu", {"x"}, {"h"});
  model.Output("y");
  EXPECT_THAT(model.Run({Floats({2}, {-1, 2})}), ElementsAre(Floats({2}, {0, -2})));
}

TEST(ImportTest, InitializersOfInputsAreConstants) {
  TestModel model(8);
  model.Input("x", "float32", {2});
  model.Input("w", "float32", {2});
  model.Initializer("w", Floats({2}, {3, 4}));
  model.Node("Mul", {"x", "w"}, {"y"});
  model.Output("y");
  ASSERT_OK_AND_ASSIGN(const graph::Graph graph, model.Import());
  EXPECT_EQ(graph.inputs().size(), 1u);
  EXPECT_THAT(model.Run({Floats({2}, {1, 2})}), ElementsAre(Floats({2}, {3, 8})));
}

TEST(ImportTest, LargeConstantsAreLeftToTheNetworkAndViewsOfThemAreShared) {
  TestModel model;
  ir::NDArray w(ir::kFloat32, {1 << 11, 1 << 10});
  w.FillRandom(1);
  model.Input("x", "float32", {1, 1 << 11});
  model.Initializer("w", w);
  model.Ints("to", {1 << 11, 1 << 10, 1});
  model.Node("Reshape", {"w", "to"}, {"view"});
  model.Node("Neg", {"w"}, {"minus"});
  model.Output("view");
  model.Output("minus");
  ASSERT_OK_AND_ASSIGN(const graph::Graph graph, model.Import());
  EXPECT_THAT(OpsOf(graph), ElementsAre("negative"));
  const graph::Value& view = graph.value(graph.outputs()[0]);
  const graph::Value& read = graph.value(graph.node(0).inputs[0]);
  EXPECT_EQ(view.constant->bytes().data(), read.constant->bytes().data());
}

TEST(ImportTest, OpenExtentsMustBeGiven) {
  TestModel model;
  model.Input("image", "float32", {-1, 3, 4, -1});
  model.Input("scale", "float32", {1});
  model.Node("Mul", {"image", "scale"}, {"y"});
  model.Output("y");
  EXPECT_THAT(model.Import(),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--input name=1,3,224,224"),
                             HasSubstr("\n  image: float32[n, 3, 4, n]\n  scale: float32[1]\n"),
                             HasSubstr("for example: --input image=1,3,4,1"))));
  ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                       model.Import({.input_shapes = {{"image", {2, 3, 4, 5}}}}));
  EXPECT_EQ(graph.value(graph.outputs()[0]).type.shape, (std::vector<int64_t>{2, 3, 4, 5}));
  EXPECT_THAT(model.Import({.input_shapes = {{"image", {2, 9, 4, 5}}}}),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("input 'image' is [n, 3, 4, n] in the model, --input says "
                                 "[2, 9, 4, 5]")));
  EXPECT_THAT(
      model.Import({.input_shapes = {{"imag", {2}}}}),
      StatusIs(StatusCode::kInvalidArgument, HasSubstr("no input 'imag', did you mean image?")));
  ASSERT_OK_AND_ASSIGN(const graph::Graph empty,
                       model.Import({.input_shapes = {{"image", {0, 3, 4, 5}}}}));
  EXPECT_EQ(empty.value(empty.outputs()[0]).type.shape, (std::vector<int64_t>{0, 3, 4, 5}));
  EXPECT_THAT(model.Import({.input_shapes = {{"image", {-5, 3, 4, 5}}}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("-5")));
}

TEST(ImportTest, InputsMayBeFixed) {
  TestModel model;
  model.Input("x", "float32", {2, 3});
  model.Input("axes", "int64", {1});
  model.Node("ReduceSum", {"x", "axes"}, {"y"}, {{"keepdims", int64_t{0}}});
  model.Output("y");
  EXPECT_THAT(model.Import(), StatusIs(StatusCode::kUnimplemented,
                                       HasSubstr("its input axes is computed while the network")));
  const ImportOptions options{.input_values = {{"axes", Ints({1})}}};
  EXPECT_THAT(model.Run({Floats({2, 3}, {1, 2, 3, 4, 5, 6})}, options),
              ElementsAre(Floats({2}, {6, 15})));
  EXPECT_THAT(model.Import({.input_values = {{"axis", Ints({1})}}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no input 'axis'")));
}

TEST(ImportTest, AllThatIsNotSupportedIsToldAtOnce) {
  TestModel model(13);
  model.Input("x", "float32", {2, 3});
  model.Input("image", "string", {2, 3});
  model.Initializer("k", Ints({1}));
  model.Node("NonMaxSuppression", {"x", "x"}, {"u"}).set_name("boxes");
  model.Node("Relu", {"u"}, {"r"});
  model.Node("NonMaxSuppression", {"x", "x"}, {"v"}).set_name("boxes again");
  model.Node("DetOfSomebody", {"x"}, {"d"}).set_domain("my.company");
  model.Node("NonZero", {"x"}, {"z"});
  model.Node("Cast", {"image"}, {"c"}, {{"to", int64_t{1}}});
  for (const char* name : {"r", "v", "d", "z", "c"}) model.Output(name);
  EXPECT_THAT(
      model.Import(),
      StatusIs(
          StatusCode::kUnimplemented,
          AllOf(HasSubstr("needs 4 things that Kiln does not have:"),
                HasSubstr("\n  NonMaxSuppression (ai.onnx 13) at 'boxes' and 1 more: the shape"),
                HasSubstr("\n  DetOfSomebody (my.company 1) at 'd': an operator of another"),
                HasSubstr("\n  NonZero (ai.onnx 13) at 'z': the shape of its result depends"),
                HasSubstr("\n  input 'image': elements of string"), Not(HasSubstr("Relu")))));
}

TEST(ImportTest, FunctionsAreCalledInLine) {
  TestModel model;
  auto& set = *model.proto().add_opset_import();
  set.set_domain("my");
  set.set_version(1);
  auto& function = *model.proto().add_functions();
  function.set_name("Scaled");
  function.set_domain("my");
  function.add_input("a");
  function.add_output("b");
  function.add_attribute("alpha");
  auto& opset = *function.add_opset_import();
  opset.set_version(17);
  auto& node = *function.add_node();
  node.set_op_type("LeakyRelu");
  node.add_input("a");
  node.add_output("b");
  auto& attribute = *node.add_attribute();
  attribute.set_name("alpha");
  attribute.set_ref_attr_name("alpha");
  attribute.set_type(::onnx::AttributeProto::FLOAT);
  model.Input("x", "float32", {2});
  model.Node("Scaled", {"x"}, {"h"}, {{"alpha", 0.5}}).set_domain("my");
  // The attribute is missing, so LeakyRelu's own default counts.
  model.Node("Scaled", {"h"}, {"y"}).set_domain("my");
  model.Output("y");
  EXPECT_NEAR(model.Run({Floats({2}, {-8, 2})})[0].GetDouble(0), -0.04, 1e-6);

  // Newer versions of ONNX write a default into a field that onnx.proto does not know.
  ::onnx::AttributeProto value = attribute;
  value.clear_ref_attr_name();
  value.set_f(0.25);
  const std::string bytes = value.SerializeAsString();
  std::string* unknown = function.mutable_unknown_fields();
  *unknown += static_cast<char>(11 << 3 | 2);
  *unknown += static_cast<char>(bytes.size());
  *unknown += bytes;
  EXPECT_NEAR(model.Run({Floats({2}, {-8, 2})})[0].GetDouble(0), -1, 1e-6);
}

TEST(ImportTest, FunctionsThatCallThemselvesAreRefused) {
  TestModel model;
  auto& function = *model.proto().add_functions();
  function.set_name("Again");
  function.set_domain("my");
  function.add_input("a");
  function.add_output("b");
  auto& node = *function.add_node();
  node.set_op_type("Again");
  node.set_domain("my");
  node.add_input("a");
  node.add_output("b");
  model.Input("x", "float32", {2});
  model.Node("Again", {"x"}, {"y"}).set_domain("my");
  model.Output("y");
  EXPECT_THAT(model.Import(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("function Again calls itself")));
}

TEST(ImportTest, FunctionsThatMultiplyAreBounded) {
  // Each of 40 functions calls the next one twice.
  TestModel model;
  for (int i = 0; i < 40; ++i) {
    auto& function = *model.proto().add_functions();
    function.set_name(fmt::format("F{}", i));
    function.set_domain("my");
    function.add_input("a");
    function.add_output("c");
    for (const auto& [from, to] : {std::pair("a", "b"), std::pair("b", "c")}) {
      auto& node = *function.add_node();
      node.set_op_type(i == 39 ? "NoSuchOperator" : fmt::format("F{}", i + 1));
      node.set_domain("my");
      node.add_input(from);
      node.add_output(to);
    }
  }
  model.Input("x", "float32", {2});
  model.Node("F0", {"x"}, {"y"}).set_domain("my");
  model.Output("y");
  EXPECT_THAT(model.Import(),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("it comes to too many nodes")));
}

TEST(ImportTest, FieldsOfNewerVersionsAreHarmless) {
  const auto imported = [](bool has_newer_fields) {
    TestModel model;
    model.Input("x", "float32", {2});
    auto& node = model.Node("Relu", {"x"}, {"y"});
    if (has_newer_fields) {
      node.mutable_unknown_fields()->assign(
          "\x42\x03"
          "abc",
          5);  // overload, 8
      model.proto().mutable_graph()->mutable_unknown_fields()->assign("\x82\x01\x01z", 4);  // 16
    }
    model.Output("y");
    const auto graph = model.Import();
    EXPECT_OK(graph);
    return graph.ok() ? graph::PrintGraph(*graph) : std::string();
  };
  EXPECT_NE(imported(false), "");
  EXPECT_EQ(imported(true), imported(false));
}

TEST(ImportTest, OperatorSets) {
  const auto with_version = [](int version) {
    TestModel model(version);
    model.Input("x", "float32", {2});
    model.Node("Relu", {"x"}, {"r"});
    model.Node("Relu", {"r"}, {"y"});
    model.Output("y");
    return model.Import();
  };
  for (int version : {7, 23, 24, 28}) EXPECT_OK(with_version(version));
  // The meaning of later operator sets is not known.
  EXPECT_THAT(with_version(29),
              StatusIs(StatusCode::kUnimplemented,
                       HasSubstr("Relu (ai.onnx 29) at 'r' and 1 more: Kiln knows what operators "
                                 "mean up to operator set 28: export the model with opset 28")));
  EXPECT_THAT(with_version(5000), StatusIs(StatusCode::kInvalidArgument,
                                           HasSubstr("version 5000 of the operator set ai.onnx")));
  TestModel named(17);
  named.proto().mutable_opset_import(0)->set_domain("ai.onnx");
  named.Input("x", "float32", {2});
  named.Node("Relu", {"x"}, {"y"}).set_domain("ai.onnx");
  named.Output("y");
  EXPECT_OK(named.Import());
}

}  // namespace
}  // namespace kiln::frontend
