// Integers of 8 and 16 bits and unsigned integers as inputs, in computations and as outputs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/status_testing.h"
#include "frontend/onnx/model_testing.h"

namespace kiln::frontend {
namespace {

using ::onnx::TensorProto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns a model that quantizes x with the zero point 128 of uint8 and a scale of 0.5.
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
  // First come the largest elements of the channels, then those of the constant.
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
  // The conversion to int8 is that of C.
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

// Exporters write a convolution so: floats between quantized values. The scales are powers of 2
// here, so that the floats are exact.
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
  // The same computation in integers.
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

// quantize_dynamic writes such a product.
TEST(NarrowTest, ADynamicallyQuantizedProduct) {
  TestModel model;
  model.Input("x", "float32", {2, 2});
  model.NarrowInts("w", "uint8", {2, 1}, {255, 3});
  model.NarrowInts("wz", "uint8", {}, {5});
  model.Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  model.Node("MatMulInteger", {"q", "w", "z", "wz"}, {"p"});
  model.Node("DequantizeLinear", {"q", "s", "z"}, {"back"});
  for (const char* name : {"p", "s", "back"}) model.Output(name);
  // The range from -51 to 204 gives a scale of 1.
  const auto outputs = model.Run({Floats({2, 2}, {-51, 204, 0, 7.25})});
  EXPECT_THAT(Doubles(outputs[0]), ElementsAre(-51 * 250 + 204 * -2, 7 * -2));
  EXPECT_THAT(Doubles(outputs[1]), ElementsAre(1));
  EXPECT_THAT(Doubles(outputs[2]), ElementsAre(-51, 204, 0, 7));
  // All elements are zeros.
  EXPECT_THAT(Doubles(model.Run({Floats({2, 2}, {0, 0, 0, 0})})[0]), ElementsAre(0, 0));
}

TEST(NarrowTest, InputsThatAreFixed) {
  TestModel model;
  model.Input("q", "uint8", {2});
  model.Initializer("s", Floats({}, {2}));
  model.NarrowInts("z", "uint8", {}, {128});
  model.Node("DequantizeLinear", {"q", "s", "z"}, {"y"});
  model.Output("y");
  const ir::NDArray q(ir::kUInt8, {2}, std::vector<double>{255, 0});
  EXPECT_THAT(model.Run({}, {.input_values = {{"q", q}}}), ElementsAre(Floats({2}, {254, -256})));
}

TEST(NarrowTest, WhatEntersAndLeavesKeepsItsType) {
  TestModel model = QuantizingModel({2});
  model.Input("image", "uint8", {2});
  model.Node("Cast", {"image"}, {"c"}, {{"to", int64_t{TensorProto::FLOAT}}});
  model.Output("q");
  model.Output("c");
  const ir::NDArray image(ir::kUInt8, {2}, std::vector<double>{255, 1});
  const auto outputs = model.Run({Floats({2}, {1, -1}), image});
  EXPECT_EQ(outputs[0], ir::NDArray(ir::kUInt8, {2}, std::vector<double>{130, 126}));
  EXPECT_EQ(outputs[1], Floats({2}, {255, 1}));
}

// Arithmetic is that of the type, modulo 2^bits.
TEST(NarrowTest, Arithmetic) {
  const auto run = [](const char* op, ir::Type type, std::vector<double> a, std::vector<double> b) {
    const auto count = std::ssize(a);
    const auto outputs =
        RunNode({.op = op,
                 .version = 18,
                 .inputs = {ir::NDArray(type, {count}, a), ir::NDArray(type, {count}, b)}});
    return Doubles(outputs[0]);
  };
  EXPECT_THAT(run("Add", ir::kUInt8, {200, 255}, {100, 1}), ElementsAre(44, 0));
  EXPECT_THAT(run("Sub", ir::kUInt16, {1, 7}, {2, 3}), ElementsAre(65535, 4));
  EXPECT_THAT(run("Mul", ir::kUInt32, {4294967295, 3}, {2, 5}), ElementsAre(4294967294, 15));
  EXPECT_THAT(run("Div", ir::kUInt8, {200, 255}, {3, 128}), ElementsAre(66, 1));
  EXPECT_THAT(run("Mod", ir::kUInt8, {200, 255}, {3, 128}), ElementsAre(2, 127));
  EXPECT_THAT(run("Div", ir::kInt16, {-32768, -7}, {2, 2}), ElementsAre(-16384, -3));
  EXPECT_THAT(run("Mod", ir::kInt8, {-128, 7}, {3, -2}), ElementsAre(1, -1));
  EXPECT_THAT(run("Max", ir::kUInt8, {200, 1}, {100, 2}), ElementsAre(200, 2));
  EXPECT_THAT(run("Less", ir::kUInt32, {4294967295, 1}, {1, 2}), ElementsAre(0, 1));
  EXPECT_THAT(run("BitwiseAnd", ir::kUInt8, {0xf0, 0x81}, {0xff, 0x80}), ElementsAre(0xf0, 0x80));
  EXPECT_THAT(run("BitwiseOr", ir::kInt16, {-2, 8}, {1, 1}), ElementsAre(-1, 9));
  EXPECT_THAT(run("BitwiseXor", ir::kInt32, {-1, 8}, {1, 12}), ElementsAre(-2, 4));
}

TEST(NarrowTest, LargeUnsignedNumbers) {
  const auto numbers = [](std::vector<uint64_t> values) {
    ir::NDArray array(ir::kUInt64, {std::ssize(values)});
    for (int64_t i = 0; i < array.num_elements(); ++i)
      array.Set(i, ir::Value::Int(static_cast<int64_t>(values[static_cast<size_t>(i)])));
    return array;
  };
  const ir::NDArray a = numbers({UINT64_MAX, 5, uint64_t{1} << 63}), b = numbers({10, 7, 3});
  const auto run = [&](const char* op, std::vector<ir::NDArray> inputs,
                       const TestAttributes& attributes = {}) {
    return RunNode({.op = op, .version = 18, .attributes = attributes, .inputs = inputs})[0];
  };
  EXPECT_EQ(run("Div", {a, b}), numbers({UINT64_MAX / 10, 0, (uint64_t{1} << 63) / 3}));
  EXPECT_EQ(run("Mod", {a, b}), numbers({5, 5, (uint64_t{1} << 63) % 3}));
  EXPECT_EQ(run("Max", {a, b}), numbers({UINT64_MAX, 7, uint64_t{1} << 63}));
  EXPECT_EQ(run("Min", {a, b}), b.num_elements() == 3 ? numbers({10, 5, 3}) : b);
  EXPECT_EQ(run("Add", {a, b}), numbers({9, 12, (uint64_t{1} << 63) + 3}));
  EXPECT_THAT(Doubles(run("Greater", {a, b})), ElementsAre(1, 0, 1));
  EXPECT_EQ(run("BitwiseNot", {a}), numbers({0, UINT64_MAX - 5, (uint64_t{1} << 63) - 1}));
  EXPECT_EQ(run("BitShift", {a, numbers({60, 1, 64})}, {{"direction", std::string("RIGHT")}}),
            numbers({15, 2, 0}));
  EXPECT_THAT(Doubles(run("Cast", {a}, {{"to", int64_t{TensorProto::DOUBLE}}})),
              ElementsAre(0x1p64, 5, 0x1p63));
  EXPECT_EQ(run("Cast", {Floats({3}, {-1, 3.9, 1e30})}, {{"to", int64_t{TensorProto::UINT64}}}),
            numbers({0, 3, UINT64_MAX}));
  EXPECT_EQ(run("ReduceMax", {a}), ir::NDArray(ir::kUInt64, {1}, std::vector<double>{0x1p64}));
  const auto largest =
      RunNode({.op = "TopK", .inputs = {a, Ints({2})}, .known = {1}, .outputs = 2});
  EXPECT_EQ(largest[0], numbers({UINT64_MAX, uint64_t{1} << 63}));
  EXPECT_EQ(RunNode({.op = "Unique", .inputs = {a}, .known = {0}})[0],
            numbers({5, uint64_t{1} << 63, UINT64_MAX}));
  // The numbers are constants here.
  TestModel model;
  model.NarrowInts("raw", "uint64", {2}, {-1, 3});
  TensorProto typed;
  typed.set_data_type(TensorProto::UINT64);
  typed.set_name("typed");
  typed.add_dims(2);
  for (uint64_t value : {UINT64_MAX, uint64_t{3}}) typed.add_uint64_data(value);
  *model.proto().mutable_graph()->add_initializer() = typed;
  model.Output("raw");
  model.Output("typed");
  EXPECT_THAT(model.Run({}), ElementsAre(numbers({UINT64_MAX, 3}), numbers({UINT64_MAX, 3})));
}

TEST(NarrowTest, BitsOfFloats) {
  const auto cast = [](int to, const ir::NDArray& x) {
    return RunNode(
        {.op = "BitCast", .version = 26, .attributes = {{"to", int64_t{to}}}, .inputs = {x}})[0];
  };
  const ir::NDArray x = Floats({3}, {1, -0.0, 0x1p-140});
  const ir::NDArray bits = cast(TensorProto::INT32, x);
  EXPECT_THAT(Doubles(bits), ElementsAre(0x3f800000, INT32_MIN, 512));
  EXPECT_EQ(cast(TensorProto::FLOAT, bits), x);
  EXPECT_THAT(Doubles(cast(TensorProto::UINT16, ir::NDArray(ir::kFloat16, {1}, std::vector{1.0}))),
              ElementsAre(0x3c00));
  EXPECT_THAT(Doubles(cast(19, ir::NDArray(ir::kUInt8, {1}, std::vector{60.0}))), ElementsAre(1));
  EXPECT_THAT(Doubles(cast(TensorProto::UINT8, ir::NDArray(ir::kBool, {2}, std::vector{0.0, 1.0}))),
              ElementsAre(0, 1));
  EXPECT_THAT(TryNode({.op = "BitCast",
                       .version = 26,
                       .attributes = {{"to", int64_t{TensorProto::INT64}}},
                       .inputs = {x}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("a type of 4 bytes")));
  EXPECT_THAT(TryNode({.op = "BitCast",
                       .version = 26,
                       .attributes = {{"to", int64_t{TensorProto::BOOL}}},
                       .inputs = {ir::NDArray(ir::kUInt8, {1}, std::vector{60.0})}}),
              StatusIs(StatusCode::kUnimplemented, HasSubstr("as bool: compare with 0")));
}

TEST(NarrowTest, BitsOfOneNumber) {
  const ir::NDArray x(ir::kUInt8, {3}, std::vector<double>{0, 1, 255});
  EXPECT_THAT(Doubles(RunNode({.op = "BitwiseNot", .version = 18, .inputs = {x}})[0]),
              ElementsAre(255, 254, 0));
  EXPECT_THAT(Doubles(RunNode({.op = "BitCast",
                               .version = 26,
                               .attributes = {{"to", int64_t{TensorProto::INT8}}},
                               .inputs = {x}})[0]),
              ElementsAre(0, 1, -1));
  EXPECT_THAT(Doubles(RunNode({.op = "MaxPool",
                               .attributes = {{"kernel_shape", std::vector<int64_t>{2}},
                                              {"pads", std::vector<int64_t>{1, 1}}},
                               .inputs = {ir::NDArray(ir::kUInt8, {1, 1, 3},
                                                      std::vector<double>{0, 1, 255})}})[0]),
              ElementsAre(0, 1, 255, 255));
}

TEST(NarrowTest, Shifts) {
  const auto shift = [](const char* direction, ir::Type type, std::vector<double> a,
                        std::vector<double> b) {
    const auto count = std::ssize(a);
    return Doubles(
        RunNode({.op = "BitShift",
                 .version = 28,
                 .attributes = {{"direction", std::string(direction)}},
                 .inputs = {ir::NDArray(type, {count}, a), ir::NDArray(type, {count}, b)}})[0]);
  };
  EXPECT_THAT(shift("LEFT", ir::kUInt8, {1, 255, 1, 3}, {7, 4, 8, 200}),
              ElementsAre(128, 240, 0, 0));
  EXPECT_THAT(shift("RIGHT", ir::kUInt8, {128, 255, 255}, {7, 4, 8}), ElementsAre(1, 15, 0));
  EXPECT_THAT(shift("RIGHT", ir::kInt32, {-8, -8, -8, 8, 8}, {1, 32, -1, -1, 2}),
              ElementsAre(-4, -1, -1, 0, 2));
  EXPECT_THAT(shift("LEFT", ir::kInt8, {-1, 1, 1}, {7, 7, -1}), ElementsAre(-128, -128, 0));
}

TEST(NarrowTest, TypesAreNotMixed) {
  TestModel mixed = QuantizingModel({2});
  mixed.Initializer("i", ir::NDArray(ir::kInt32, {2}));
  mixed.Node("Concat", {"q", "i"}, {"y"}, {{"axis", int64_t{0}}});
  mixed.Output("y");
  EXPECT_THAT(mixed.Import(), StatusIs(StatusCode::kInvalidArgument,
                                       HasSubstr("inputs of uint8 and int32, expected the same")));
}

TEST(NarrowTest, BranchesThatAreChosenWhileTheNetworkRuns) {
  TestModel model = QuantizingModel({2});
  model.Input("c", "bool", {});
  const auto branch = [](const std::string& op) {
    return Subgraph([&](TestGraph& graph) {
      graph.Node(op, {"q", "z"}, {op});
      graph.Output(op);
    });
  };
  model.Node("If", {"c"}, {"y"}, {{"then_branch", branch("Max")}, {"else_branch", branch("Min")}});
  model.Output("y");
  const ir::NDArray condition(ir::kBool, {}, std::vector<double>{1});
  EXPECT_THAT(Doubles(model.Run({Floats({2}, {1, -1}), condition})[0]), ElementsAre(130, 128));
}

// Types that Kiln lacks are refused with advice.
TEST(NarrowTest, TypesThatKilnLacks) {
  struct Case {
    int type;
    const char* text;
  };
  for (const Case& c : {Case{21, "elements of uint4, which Kiln lacks: quantize to int8 or uint8"},
                        Case{22, "elements of int4, which Kiln lacks: quantize to int8 or uint8"},
                        Case{23, "elements of float4e2m1, which Kiln lacks: quantize to int8"},
                        Case{18, "elements of float8e4m3fnuz, which Kiln lacks: use float8_e4m3fn"},
                        Case{TensorProto::STRING, "elements of string, which Kiln lacks: compare"},
                        Case{TensorProto::COMPLEX64, "keep real and imaginary parts"}}) {
    EXPECT_THAT(TryNode({.op = "Cast",
                         .version = 25,
                         .attributes = {{"to", int64_t{c.type}}},
                         .inputs = {Floats({2}, {1, 2})}}),
                StatusIs(StatusCode::kUnimplemented, HasSubstr(c.text)));
  }
}

}  // namespace
}  // namespace kiln::frontend
