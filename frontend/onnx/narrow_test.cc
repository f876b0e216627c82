// Integer types that Kiln lacks, inside networks: held in wider ones, with the same values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/status_testing.h"
#include "frontend/onnx/model_testing.h"

namespace kiln::frontend {
namespace {

using ::onnx::TensorProto;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model of x with the zero point of uint8 128 and a scale of 0.5.
TestModel QuantizingModel(std::vector<int64_t> shape) {
  TestModel model;
  model.Input("x", "float32", std::move(shape));
  model.Initializer("s", Floats({}, {0.5}));
  model.NarrowInts("z", "uint8", {}, {128});
  model.Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  return model;
}

TEST(NarrowTest, QuantizedAndBack) {
  TestModel model = QuantizingModel({6});
  model.Node("DequantizeLinear", {"q", "s", "z"}, {"y"});
  model.Output("y");
  EXPECT_THAT(model.Run({Floats({6}, {0, 0.25, 0.75, -3, 1000, -1000})}),
              ElementsAre(Floats({6}, {0, 0, 1, -3, 63.5, -64})));
}

TEST(NarrowTest, TheTypeIsThatOfTheZeroPoint) {
  for (const auto& [type, least, most] :
       {std::tuple("uint8", 0.0, 255.0), std::tuple("uint16", 0.0, 65535.0),
        std::tuple("int16", -32768.0, 32767.0)}) {
    TestModel model(21);
    model.Input("x", "float32", {3});
    model.Initializer("s", Floats({}, {1}));
    model.NarrowInts("z", type, {}, {7});
    model.Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
    model.Node("DequantizeLinear", {"q", "s", "z"}, {"y"});
    model.Output("y");
    EXPECT_THAT(model.Run({Floats({3}, {-1e6, 1e6, 3})}),
                ElementsAre(Floats({3}, {least - 7, most - 7, 3})))
        << type;
  }
}

TEST(NarrowTest, ElementsAreMovedAndCompared) {
  TestModel model = QuantizingModel({1, 2, 2, 2});
  model.Ints("pads", {0, 0, 1, 0, 0, 0, 0, 0});
  model.NarrowInts("more", "uint8", {1, 2, 1, 1}, {200, 100});
  model.Node("Pad", {"q", "pads", "z"}, {"padded"});
  model.Node("MaxPool", {"padded"}, {"pooled"}, {{"kernel_shape", std::vector<int64_t>{3, 2}}});
  model.Node("Concat", {"pooled", "more"}, {"both"}, {{"axis", int64_t{0}}});
  model.Node("Transpose", {"both"}, {"turned"}, {{"perm", std::vector<int64_t>{1, 0, 2, 3}}});
  model.Node("DequantizeLinear", {"turned", "s", "z"}, {"y"});
  model.Output("y");
  // Of the channels the largest elements, then the constant's.
  EXPECT_THAT(model.Run({Floats({1, 2, 2, 2}, {1, 2, 3, 4, -1, -2, -3, -4})}),
              ElementsAre(Floats({2, 2, 1, 1}, {4, 36, 0, -14})));
}

TEST(NarrowTest, CastsWrapAround) {
  const auto cast = [](int to, const ir::NDArray& x) {
    TestModel model;
    model.Input("x", std::string(ir::TypeName(x.type())), x.shape());
    model.Node("Cast", {"x"}, {"n"}, {{"to", int64_t{to}}});
    model.Node("Cast", {"n"}, {"y"}, {{"to", int64_t{TensorProto::INT64}}});
    model.Output("y");
    return Doubles(model.Run({x})[0]);
  };
  const ir::NDArray x = Ints({-1, 300, 255, -32769, 4294967297});
  EXPECT_THAT(cast(TensorProto::UINT8, x), ElementsAre(255, 44, 255, 255, 1));
  EXPECT_THAT(cast(TensorProto::UINT16, x), ElementsAre(65535, 300, 255, 32767, 1));
  EXPECT_THAT(cast(TensorProto::INT16, x), ElementsAre(-1, 300, 255, 32767, 1));
  EXPECT_THAT(cast(TensorProto::UINT32, x), ElementsAre(4294967295, 300, 255, 4294934527, 1));
  EXPECT_THAT(cast(TensorProto::UINT8, Floats({3}, {1.9, 200.5, 0})), ElementsAre(1, 200, 0));
  // To int8 as C does it.
  TestModel model = QuantizingModel({2});
  model.Node("Cast", {"q"}, {"y"}, {{"to", int64_t{TensorProto::INT8}}});
  model.Output("y");
  EXPECT_THAT(Doubles(model.Run({Floats({2}, {36, -64})})[0]), ElementsAre(-56, 0));
}

TEST(NarrowTest, ConstantsInAllForms) {
  TestModel model;
  model.NarrowInts("a", "int16", {3}, {-2, 32767, -32768});
  model.NarrowInts("b", "uint32", {3}, {1, 4294967295, 0});
  TensorProto typed;
  typed.set_data_type(TensorProto::UINT8);
  typed.set_name("c");
  typed.add_dims(3);
  for (int value : {0, 128, 255}) typed.add_int32_data(value);
  *model.proto().mutable_graph()->add_initializer() = typed;
  for (const char* name : {"a", "b", "c"}) {
    model.Node("Cast", {name}, {fmt::format("{}y", name)}, {{"to", int64_t{TensorProto::INT64}}});
    model.Output(fmt::format("{}y", name));
  }
  EXPECT_THAT(model.Run({}), ElementsAre(Ints({-2, 32767, -32768}), Ints({1, 4294967295, 0}),
                                         Ints({0, 128, 255})));
  model.proto().mutable_graph()->mutable_initializer(0)->mutable_raw_data()->pop_back();
  EXPECT_THAT(model.Import(), StatusIs(StatusCode::kInvalidArgument,
                                       HasSubstr("tensor 'a': its raw_data has 5 bytes")));
}

// What exporters make of a convolution: floats between quantized values, whose scales are powers of 2
// here so that they are exact.
TEST(NarrowTest, AQuantizedConvolution) {
  TestModel model = QuantizingModel({1, 1, 3, 3});
  model.Initializer(
      "w", ir::NDArray(ir::kInt8, {2, 1, 2, 2}, std::vector<double>{1, 0, 0, -1, 2, 2, 2, 127}));
  model.Initializer("ws", Floats({2}, {0.25, 1}));
  model.Initializer("wz", ir::NDArray(ir::kInt8, {2}, std::vector<double>{0, 0}));
  model.Initializer("b", ir::NDArray(ir::kInt32, {2}, std::vector<double>{8, -2}));
  model.Initializer("bs", Floats({2}, {0.125, 0.5}));
  model.NarrowInts("yz", "uint8", {}, {100});
  model.Initializer("ys", Floats({}, {0.25}));
  model.Node("DequantizeLinear", {"q", "s", "z"}, {"xf"});
  model.Node("DequantizeLinear", {"w", "ws", "wz"}, {"wf"}, {{"axis", int64_t{0}}});
  model.Node("DequantizeLinear", {"b", "bs"}, {"bf"}, {{"axis", int64_t{0}}});
  model.Node("Conv", {"xf", "wf", "bf"}, {"f"});
  model.Node("QuantizeLinear", {"f", "ys", "yz"}, {"yq"});
  model.Node("DequantizeLinear", {"yq", "ys", "yz"}, {"y"});
  // The same in integers.
  model.Node("QLinearConv", {"q", "s", "z", "w", "ws", "wz", "ys", "yz", "b"}, {"lq"});
  model.Node("DequantizeLinear", {"lq", "ys", "yz"}, {"l"});
  model.Output("y");
  model.Output("l");
  const ir::NDArray x = Floats({1, 1, 3, 3}, {1, 2, 3, -4, 5, 6, 7, 0.5, -9});
  std::vector<double> expected;
  for (const auto& w : {std::vector<double>{1, 0, 0, -1}, std::vector<double>{8, 8, 8, 508}}) {
    for (int at : {0, 1, 3, 4}) {
      const auto pixel = [&](int i) { return x.GetDouble(at + i); };
      double y = w[0] * pixel(0) + w[1] * pixel(1) + w[2] * pixel(3) + w[3] * pixel(4);
      y = y / 4 + (w[1] == 0 ? 1 : -1);
      expected.push_back((std::clamp(std::nearbyint(y / 0.25) + 100, 0.0, 255.0) - 100) * 0.25);
    }
  }
  const ir::NDArray want = Floats({1, 2, 2, 2}, expected);
  EXPECT_THAT(model.Run({x}), ElementsAre(want, want));
}

// As quantize_dynamic writes it.
TEST(NarrowTest, ADynamicallyQuantizedProduct) {
  TestModel model;
  model.Input("x", "float32", {2, 2});
  model.NarrowInts("w", "uint8", {2, 1}, {255, 3});
  model.NarrowInts("wz", "uint8", {}, {5});
  model.Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  model.Node("MatMulInteger", {"q", "w", "z", "wz"}, {"p"});
  model.Node("DequantizeLinear", {"q", "s", "z"}, {"back"});
  for (const char* name : {"p", "s", "back"}) model.Output(name);
  // From -51 to 204: a scale of 1.
  const auto outputs = model.Run({Floats({2, 2}, {-51, 204, 0, 7.25})});
  EXPECT_THAT(Doubles(outputs[0]), ElementsAre(-51 * 250 + 204 * -2, 7 * -2));
  EXPECT_THAT(Doubles(outputs[1]), ElementsAre(1));
  EXPECT_THAT(Doubles(outputs[2]), ElementsAre(-51, 204, 0, 7));
  // Zeros alone.
  EXPECT_THAT(Doubles(model.Run({Floats({2, 2}, {0, 0, 0, 0})})[0]), ElementsAre(0, 0));
}

TEST(NarrowTest, InputsThatAreFixed) {
  TestModel model;
  model.Input("q", "uint8", {2});
  model.Initializer("s", Floats({}, {2}));
  model.NarrowInts("z", "uint8", {}, {128});
  model.Node("DequantizeLinear", {"q", "s", "z"}, {"y"});
  model.Output("y");
  const ir::NDArray q(ir::kInt32, {2}, std::vector<double>{255, 0});
  EXPECT_THAT(model.Run({}, {.input_values = {{"q", q}}}), ElementsAre(Floats({2}, {254, -256})));
}

TEST(NarrowTest, WhatEntersAndLeavesKeepsItsTypeAndIsRefused) {
  TestModel model = QuantizingModel({2});
  model.Input("image", "uint8", {2});
  model.Node("Cast", {"image"}, {"c"}, {{"to", int64_t{TensorProto::FLOAT}}});
  model.Output("q");
  model.Output("c");
  EXPECT_THAT(model.Import(), StatusIs(StatusCode::kUnimplemented,
                                       AllOf(HasSubstr("input 'image': elements of uint8"),
                                             HasSubstr("output 'q': elements of uint8"))));
}

TEST(NarrowTest, ArithmeticIsRefused) {
  TestModel model = QuantizingModel({2});
  model.Node("Add", {"q", "q"}, {"sum"});
  model.Node("Cast", {"sum"}, {"y"}, {{"to", int64_t{TensorProto::FLOAT}}});
  model.Output("y");
  EXPECT_THAT(model.Import(),
              StatusIs(StatusCode::kUnimplemented, HasSubstr("Add (ai.onnx 17) at 'sum': its input "
                                                             "0 is uint8, which Kiln moves")));
  TestModel mixed = QuantizingModel({2});
  mixed.Initializer("i", ir::NDArray(ir::kInt32, {2}));
  mixed.Node("Concat", {"q", "i"}, {"y"}, {{"axis", int64_t{0}}});
  mixed.Output("y");
  EXPECT_THAT(mixed.Import(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("its inputs have different types")));
}

// A branch that is chosen while the network runs has one type only.
TEST(NarrowTest, BranchesAreRefused) {
  TestModel model = QuantizingModel({2});
  model.Input("c", "bool", {});
  const auto branch = [](const std::string& name) {
    return Subgraph([&](TestGraph& graph) {
      graph.Node("Identity", {"q"}, {name});
      graph.Output(name);
    });
  };
  model.Node("If", {"c"}, {"r"}, {{"then_branch", branch("a")}, {"else_branch", branch("b")}});
  model.Node("Cast", {"r"}, {"y"}, {{"to", int64_t{TensorProto::FLOAT}}});
  model.Output("y");
  EXPECT_THAT(model.Import(),
              StatusIs(StatusCode::kUnimplemented, HasSubstr("its graph makes uint8")));
}

}  // namespace
}  // namespace kiln::frontend
