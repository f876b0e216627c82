// Tests rules of operators beyond ONNX's own cases (tests/onnx): older versions, combinations of
// attributes, and inputs that are computed and not known.
#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "base/status_testing.h"
#include "frontend/onnx/model_testing.h"

namespace kiln::frontend {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

ir::NDArray OutputOf(const TestNode& node) { return RunNode(node)[0]; }

void ExpectNear(const ir::NDArray& found, const ir::NDArray& expected, double tolerance = 1e-5) {
  EXPECT_OK(ir::Compare(found, expected, {.relative = tolerance, .absolute = tolerance}));
}

// Returns the element at an index.
double At(const ir::NDArray& array, std::vector<int64_t> index) {
  return array.GetDouble(array.Flatten(index));
}

TEST(VersionsTest, WhatWereAttributes) {
  const ir::NDArray x = Floats({1, 3}, {-2, 0.5, 2}), column = Floats({3, 1}, {-2, 0.5, 2});
  EXPECT_EQ(
      OutputOf(
          {.op = "Clip", .version = 6, .attributes = {{"min", -1.0}, {"max", 1.0}}, .inputs = {x}}),
      Floats({1, 3}, {-1, 0.5, 1}));
  EXPECT_EQ(OutputOf({.op = "Squeeze",
                      .version = 11,
                      .attributes = {{"axes", std::vector<int64_t>{-2}}},
                      .inputs = {x}}),
            Floats({3}, {-2, 0.5, 2}));
  EXPECT_EQ(OutputOf({.op = "Unsqueeze",
                      .version = 11,
                      .attributes = {{"axes", std::vector<int64_t>{3, 0}}},
                      .inputs = {x}}),
            Floats({1, 1, 3, 1}, {-2, 0.5, 2}));
  EXPECT_EQ(OutputOf({.op = "Slice",
                      .version = 9,
                      .attributes = {{"starts", std::vector<int64_t>{1}},
                                     {"ends", std::vector<int64_t>{99}},
                                     {"axes", std::vector<int64_t>{1}}},
                      .inputs = {x}}),
            Floats({1, 2}, {0.5, 2}));
  EXPECT_EQ(OutputOf({.op = "Pad",
                      .version = 2,
                      .attributes = {{"pads", std::vector<int64_t>{0, 1, 0, -1}}, {"value", 7.0}},
                      .inputs = {x}}),
            Floats({1, 3}, {7, -2, 0.5}));
  EXPECT_EQ(OutputOf({.op = "ReduceSum",
                      .version = 11,
                      .attributes = {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}},
                      .inputs = {x}}),
            Floats({1}, {0.5}));
  EXPECT_EQ(OutputOf({.op = "ReduceMax", .version = 18, .inputs = {x, Ints({-1})}, .known = {1}}),
            Floats({1, 1}, {2}));
  EXPECT_EQ(OutputOf({.op = "Upsample",
                      .version = 7,
                      .attributes = {{"scales", std::vector<double>{2, 1}}},
                      .inputs = {x}}),
            Floats({2, 3}, {-2, 0.5, 2, -2, 0.5, 2}));
  EXPECT_EQ(OutputOf({.op = "Reshape",
                      .version = 1,
                      .attributes = {{"shape", std::vector<int64_t>{-1, 1}}},
                      .inputs = {x}}),
            column);
  EXPECT_EQ(
      OutputOf(
          {.op = "Cast", .version = 1, .attributes = {{"to", std::string("INT32")}}, .inputs = {x}})
          .type(),
      ir::kInt32);
  const auto parts =
      RunNode({.op = "Split",
               .version = 11,
               .attributes = {{"axis", int64_t{1}}, {"split", std::vector<int64_t>{1, 2}}},
               .inputs = {x},
               .outputs = 2});
  EXPECT_EQ(parts[1], Floats({1, 2}, {0.5, 2}));
  const auto top = RunNode(
      {.op = "TopK", .version = 9, .attributes = {{"k", int64_t{2}}}, .inputs = {x}, .outputs = 2});
  EXPECT_EQ(top[0], Floats({1, 2}, {2, 0.5}));
  EXPECT_THAT(Doubles(top[1]), ElementsAre(2, 1));
}

TEST(VersionsTest, SplitsThatDontComeOutEven) {
  const ir::NDArray x = Floats({5}, {1, 2, 3, 4, 5});
  const auto parts = RunNode({.op = "Split",
                              .version = 18,
                              .attributes = {{"num_outputs", int64_t{3}}},
                              .inputs = {x},
                              .outputs = 3});
  EXPECT_EQ(parts[0], Floats({2}, {1, 2}));
  EXPECT_EQ(parts[2], Floats({1}, {5}));
  EXPECT_THAT(TryNode({.op = "Split", .version = 13, .inputs = {x}, .outputs = 2}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("an extent of 5 in 2 equal parts")));
}

TEST(VersionsTest, OldSoftmaxSeesAMatrix) {
  const ir::NDArray x = SmallFloats({2, 3, 4}, 5);
  const ir::NDArray old = OutputOf({.op = "Softmax", .version = 11, .inputs = {x}});
  EXPECT_EQ(old.shape(), x.shape());
  double sum = 0;
  for (int64_t i = 0; i < 12; ++i) sum += old.GetDouble(i);
  // The sum goes over the 12 elements from axis 1 on.
  EXPECT_NEAR(sum, 1, 1e-5);
  const ir::NDArray now = OutputOf({.op = "Softmax", .version = 13, .inputs = {x}});
  EXPECT_NEAR(now.GetDouble(0) + now.GetDouble(1) + now.GetDouble(2) + now.GetDouble(3), 1, 1e-5);
  const ir::NDArray hard = OutputOf({.op = "Hardmax", .version = 11, .inputs = {x}});
  double ones = 0;
  for (int64_t i = 0; i < 24; ++i) ones += hard.GetDouble(i);
  EXPECT_EQ(ones, 2);
}

TEST(VersionsTest, OldBroadcastIsAlongAnAxis) {
  const ir::NDArray x = SmallFloats({2, 3, 2}, 1), y = Floats({3}, {10, 20, 30});
  const ir::NDArray sum = OutputOf({.op = "Add",
                                    .version = 6,
                                    .attributes = {{"broadcast", int64_t{1}}, {"axis", int64_t{1}}},
                                    .inputs = {x, y}});
  EXPECT_EQ(At(sum, {1, 2, 1}), At(x, {1, 2, 1}) + 30);
}

TEST(ElementwiseRulesTest, Powers) {
  const ir::NDArray x = Floats({4}, {0.5, 1, 2, 4});
  for (double exponent : {-1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 2.5}) {
    const ir::NDArray y =
        OutputOf({.op = "Pow", .inputs = {x, Floats({1}, {exponent})}, .known = {1}});
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_NEAR(y.GetDouble(i), std::pow(x.GetDouble(i), exponent), 1e-5) << exponent;
  }
  EXPECT_EQ(OutputOf({.op = "Pow", .inputs = {Ints({-2, 3}), Ints({5, 4})}}), Ints({-32, 81}));
  // The exponent gives the result its shape.
  EXPECT_EQ(OutputOf({.op = "Pow", .inputs = {Floats({}, {3}), Floats({1, 1}, {2})}, .known = {1}}),
            Floats({1, 1}, {9}));
}

TEST(ElementwiseRulesTest, BoundsThatAreComputed) {
  const ir::NDArray x = Floats({3}, {-5, 0, 5});
  EXPECT_EQ(OutputOf({.op = "Clip", .inputs = {x, Floats({}, {-1}), Floats({}, {2})}}),
            Floats({3}, {-1, 0, 2}));
  EXPECT_EQ(
      OutputOf({.op = "Clip", .inputs = {x, Floats({}, {-1}), Floats({}, {2})}, .known = {1}}),
      Floats({3}, {-1, 0, 2}));
  EXPECT_EQ(OutputOf({.op = "Clip", .inputs = {x, Ints({}), Floats({}, {2})}}),
            Floats({3}, {-5, 0, 2}));
}

TEST(IndexingRulesTest, OneHotOfComputedValues) {
  const TestNode node{
      .op = "OneHot", .inputs = {Ints({1, -1, 9}), Ints({3}), Floats({2}, {5, 6})}, .known = {1}};
  EXPECT_EQ(OutputOf(node), Floats({3, 3}, {5, 6, 5, 5, 5, 6, 5, 5, 5}));
}

// Evaluates an equation by its definition: sums over all values of all labels.
ir::NDArray SumOverLabels(const std::string& equation, const std::vector<ir::NDArray>& inputs) {
  std::vector<std::string> terms(1);
  const size_t arrow = equation.find("->");
  for (char c : equation.substr(0, arrow)) {
    if (c == ',') terms.emplace_back();
    if (c != ',') terms.back() += c;
  }
  const std::string output = equation.substr(arrow + 2);
  std::map<char, int64_t> extents, at;
  for (size_t t = 0; t < terms.size(); ++t)
    for (size_t d = 0; d < terms[t].size(); ++d) extents[terms[t][d]] = inputs[t].shape()[d];
  const auto index = [&](const std::string& labels) {
    std::vector<int64_t> i;
    for (char label : labels) i.push_back(at[label]);
    return i;
  };
  std::vector<int64_t> shape;
  for (char label : output) shape.push_back(extents[label]);
  ir::NDArray result(ir::kFloat32, shape);
  const std::function<void(std::map<char, int64_t>::iterator)> loop = [&](auto it) {
    if (it == extents.end()) {
      double product = 1;
      for (size_t t = 0; t < terms.size(); ++t) product *= At(inputs[t], index(terms[t]));
      const int64_t flat = result.Flatten(index(output));
      result.SetDouble(flat, result.GetDouble(flat) + product);
      return;
    }
    for (int64_t i = 0; i < it->second; ++i) {
      at[it->first] = i;
      loop(std::next(it));
    }
  };
  loop(extents.begin());
  return result;
}

TEST(EinsumTest, EquationsByTheirDefinition) {
  struct Case {
    std::string equation;
    std::vector<std::vector<int64_t>> shapes;
  };
  const Case cases[] = {{"ij,jk->ik", {{2, 3}, {3, 4}}},
                        {"bij,bkj->bki", {{2, 3, 4}, {2, 5, 4}}},
                        {"i,j->ij", {{2}, {3}}},
                        {"ij->", {{2, 3}}},
                        {"ij->ji", {{2, 3}}},
                        {"ii->i", {{3, 3}}},
                        {"iij->j", {{3, 3, 2}}},
                        {"bibj->ji", {{2, 3, 2, 4}}},
                        {"ij,ij->i", {{2, 3}, {2, 3}}},
                        {"bi,ij,jk->bk", {{2, 3}, {3, 4}, {4, 2}}},
                        {"bhqd,bhkd->bhqk", {{2, 2, 3, 4}, {2, 2, 5, 4}}},
                        {"abc,cd,d->ab", {{2, 3, 2}, {2, 3}, {3}}},
                        {"a,a,a->a", {{3}, {3}, {3}}}};
  for (const Case& c : cases) {
    std::vector<ir::NDArray> inputs;
    for (const auto& shape : c.shapes) inputs.push_back(SmallFloats(shape, inputs.size() + 1));
    const ir::NDArray found =
        OutputOf({.op = "Einsum", .attributes = {{"equation", c.equation}}, .inputs = inputs});
    EXPECT_EQ(found, SumOverLabels(c.equation, inputs)) << c.equation;
  }
}

TEST(EinsumTest, EllipsesBroadcast) {
  const ir::NDArray a = SmallFloats({5, 1, 2, 3}, 1), b = SmallFloats({4, 3, 2}, 2);
  const auto einsum = [&](const std::string& equation) {
    return OutputOf({.op = "Einsum", .attributes = {{"equation", equation}}, .inputs = {a, b}});
  };
  const ir::NDArray product = OutputOf({.op = "MatMul", .inputs = {a, b}});
  EXPECT_EQ(einsum("...ij,...jk->...ik"), product);
  EXPECT_EQ(einsum("...ij, ...jk -> ...ik"), product);
  EXPECT_EQ(einsum("...ij,...jk"), product);
}

TEST(EinsumTest, Refusals) {
  const auto refusal = [](const std::string& equation) {
    return TryNode({.op = "Einsum",
                    .attributes = {{"equation", equation}},
                    .inputs = {SmallFloats({2, 3}, 1)}})
        .status();
  };
  for (const char* equation :
       {"ijk->i", "ij->k", "i.j->i", "......->", "ij,jk->ik", "ii->i", "", "->"})
    EXPECT_THAT(refusal(equation),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("Einsum of 'y0'")))
        << equation;
}

// Returns x reversed along axis 0.
ir::NDArray Reversed(const ir::NDArray& x) {
  return OutputOf({.op = "Slice",
                   .inputs = {x, Ints({-1}), Ints({INT64_MIN}), Ints({0}), Ints({-1})},
                   .known = {1, 2, 3, 4}});
}
ir::NDArray Random(std::vector<int64_t> shape, uint64_t seed) {
  ir::NDArray array(ir::kFloat32, std::move(shape));
  array.FillRandom(seed);
  return array;
}
ir::NDArray Part(const ir::NDArray& x, int64_t axis, int64_t begin, int64_t end) {
  return OutputOf(
      {.op = "Slice", .inputs = {x, Ints({begin}), Ints({end}), Ints({axis})}, .known = {1, 2, 3}});
}

class RecurrentTest : public ::testing::TestWithParam<std::pair<const char*, int64_t>> {
 protected:
  // Returns a node of that many directions: sequences of 4 steps, 2 in a batch, 3 numbers each; 5
  // hidden.
  TestNode Node(int64_t directions, const std::string& direction) const {
    const auto [op, gates] = GetParam();
    return {
        .op = op,
        .attributes = {{"hidden_size", int64_t{5}}, {"direction", direction}},
        .inputs = {Random({4, 2, 3}, 1), Random({directions, gates * 5, 3}, 2),
                   Random({directions, gates * 5, 5}, 3), Random({directions, 2 * gates * 5}, 4)},
        .outputs = 2};
  }
};

TEST_P(RecurrentTest, ReverseIsForwardOfTheReversed) {
  const TestNode forward = Node(1, "forward");
  TestNode reverse = Node(1, "reverse");
  reverse.inputs[0] = Reversed(forward.inputs[0]);
  const auto a = RunNode(forward), b = RunNode(reverse);
  ExpectNear(Reversed(b[0]), a[0]);
  ExpectNear(b[1], a[1]);
}

TEST_P(RecurrentTest, BidirectionalIsBoth) {
  const TestNode both = Node(2, "bidirectional");
  TestNode forward = Node(1, "forward"), reverse = Node(1, "reverse");
  for (size_t i = 1; i < 4; ++i) {
    forward.inputs[i] = Part(both.inputs[i], 0, 0, 1);
    reverse.inputs[i] = Part(both.inputs[i], 0, 1, 2);
  }
  const auto y = RunNode(both), f = RunNode(forward), r = RunNode(reverse);
  ExpectNear(Part(y[0], 1, 0, 1), f[0]);
  ExpectNear(Part(y[0], 1, 1, 2), r[0]);
  ExpectNear(Part(y[1], 0, 1, 2), r[1]);
}

TEST_P(RecurrentTest, ShortSequencesEndEarly) {
  TestNode node = Node(1, "forward");
  const auto whole = RunNode(node);
  ir::NDArray lengths(ir::kInt32, {2});
  lengths.SetDouble(0, 4);
  lengths.SetDouble(1, 2);
  node.inputs.push_back(lengths);
  const auto cut = RunNode(node);
  for (int64_t k = 0; k < 5; ++k) {
    EXPECT_EQ(At(cut[0], {3, 0, 0, k}), At(whole[0], {3, 0, 0, k}));
    EXPECT_EQ(At(cut[0], {1, 0, 1, k}), At(whole[0], {1, 0, 1, k}));
    EXPECT_EQ(At(cut[0], {2, 0, 1, k}), 0);
    EXPECT_EQ(At(cut[1], {0, 1, k}), At(whole[0], {1, 0, 1, k}));
  }
}

TEST_P(RecurrentTest, BatchMayComeFirst) {
  TestNode node = Node(1, "forward");
  const auto steps_first = RunNode(node);
  node.inputs[0] = OutputOf({.op = "Transpose",
                             .attributes = {{"perm", std::vector<int64_t>{1, 0, 2}}},
                             .inputs = {node.inputs[0]}});
  node.attributes["layout"] = int64_t{1};
  const auto batch_first = RunNode(node);
  for (int64_t t = 0; t < 4; ++t)
    for (int64_t b = 0; b < 2; ++b)
      EXPECT_EQ(At(batch_first[0], {b, t, 0, 3}), At(steps_first[0], {t, 0, b, 3}));
  EXPECT_EQ(batch_first[1].shape(), (std::vector<int64_t>{2, 1, 5}));
}

INSTANTIATE_TEST_SUITE_P(All, RecurrentTest,
                         ::testing::Values(std::pair("RNN", 1), std::pair("GRU", 3),
                                           std::pair("LSTM", 4)),
                         [](const auto& info) { return std::string(info.param.first); });

TEST(RecurrentRulesTest, ActivationsTakeTheirParametersInOrder) {
  // The first step gives h = 0.5 (x + 0) + 0.25, the second 0.5 (x + h) + 0.25.
  const TestNode node{
      .op = "RNN",
      .attributes = {{"hidden_size", int64_t{1}},
                     {"activations", std::vector<std::string>{"Affine"}},
                     {"activation_alpha", std::vector<double>{0.5}},
                     {"activation_beta", std::vector<double>{0.25}}},
      .inputs = {Floats({2, 1, 1}, {1, 2}), Floats({1, 1, 1}, {1}), Floats({1, 1, 1}, {1})}};
  EXPECT_THAT(Doubles(OutputOf(node)), ElementsAre(0.75, 1.625));
  TestNode other = node;
  other.attributes["activations"] = std::vector<std::string>{"Sinc"};
  EXPECT_THAT(TryNode(other),
              StatusIs(StatusCode::kUnimplemented, HasSubstr("the activation 'sinc'")));
}

ir::NDArray Int8(std::vector<int64_t> shape, std::vector<double> values) {
  return ir::NDArray(ir::kInt8, std::move(shape), values);
}

TEST(QuantizationTest, ByTensorAxisAndBlock) {
  const ir::NDArray q = Int8({2, 4}, {-128, 0, 1, 127, 4, 3, 2, 1});
  EXPECT_EQ(
      OutputOf({.op = "DequantizeLinear", .inputs = {q, Floats({}, {0.5}), Int8({}, {-128})}}),
      Floats({2, 4}, {0, 64, 64.5, 127.5, 66, 65.5, 65, 64.5}));
  EXPECT_EQ(OutputOf({.op = "DequantizeLinear",
                      .attributes = {{"axis", int64_t{0}}},
                      .inputs = {q, Floats({2}, {1, 10}), Int8({2}, {0, 1})}}),
            Floats({2, 4}, {-128, 0, 1, 127, 30, 20, 10, 0}));
  // Blocks have 3 elements along axis 1; the last block has 1.
  EXPECT_EQ(OutputOf({.op = "DequantizeLinear",
                      .version = 21,
                      .attributes = {{"axis", int64_t{1}}, {"block_size", int64_t{3}}},
                      .inputs = {q, Floats({2, 2}, {1, 2, 3, 4})}}),
            Floats({2, 4}, {-128, 0, 1, 254, 12, 9, 6, 4}));
  // Rounds to the nearest, ties to even, and saturates.
  EXPECT_EQ(OutputOf({.op = "QuantizeLinear",
                      .inputs = {Floats({6}, {1, 3, 5, -1000, 1000, 0}), Floats({}, {2}),
                                 Int8({}, {1})}}),
            Int8({6}, {1, 3, 3, -128, 127, 1}));
  // The default type is uint8.
  EXPECT_EQ(OutputOf({.op = "QuantizeLinear", .inputs = {Floats({2}, {3, -3}), Floats({}, {2})}}),
            ir::NDArray(ir::kUInt8, {2}, std::vector<double>{2, 0}));
}

// The types are given by their numbers in the file, which are newer than onnx.proto.
TEST(QuantizationTest, Float8) {
  const ir::NDArray x = Floats({6}, {0.1, 17, 19, -1000, 1e6, 0});
  for (const auto& [number, type] :
       {std::pair{int64_t{17}, ir::kFloat8E4M3}, {int64_t{19}, ir::kFloat8E5M2}}) {
    std::vector<double> rounded;
    for (int64_t i = 0; i < 6; ++i) rounded.push_back(ir::RoundToType(x.GetDouble(i), type));
    const ir::NDArray want(type, {6}, rounded);
    EXPECT_EQ(
        OutputOf({.op = "Cast", .version = 19, .attributes = {{"to", number}}, .inputs = {x}}),
        want);
    EXPECT_EQ(OutputOf({.op = "CastLike", .version = 19, .inputs = {x, ir::NDArray(type, {1})}}),
              want);
    const auto unsaturated = TryNode({.op = "Cast",
                                      .version = 19,
                                      .attributes = {{"to", number}, {"saturate", int64_t{0}}},
                                      .inputs = {Floats({4}, {464, 465, -INFINITY, 2})}});
    if (type == ir::kFloat8E4M3) {
      ASSERT_OK(unsaturated.status());
      EXPECT_EQ((*unsaturated)[0], ir::NDArray(type, {4}, std::vector<double>{448, NAN, NAN, 2}));
    } else {
      EXPECT_THAT(unsaturated, StatusIs(StatusCode::kUnimplemented, HasSubstr("saturate is 0")));
    }
    const ir::NDArray zero(type, {});
    EXPECT_EQ(
        OutputOf({.op = "QuantizeLinear", .version = 19, .inputs = {x, Floats({}, {1}), zero}}),
        want);
    EXPECT_EQ(OutputOf({.op = "QuantizeLinear",
                        .version = 21,
                        .attributes = {{"output_dtype", number}},
                        .inputs = {x, Floats({}, {1})}}),
              want);
    for (double& value : rounded) value *= 2;
    EXPECT_EQ(
        OutputOf(
            {.op = "DequantizeLinear", .version = 19, .inputs = {want, Floats({}, {2}), zero}}),
        Floats({6}, rounded));
  }
}

TEST(QuantizationTest, Products) {
  const ir::NDArray a = Int8({2, 2}, {1, -2, 3, 4}), b = Int8({2, 2}, {5, 6, 7, -8});
  const ir::NDArray y =
      OutputOf({.op = "MatMulInteger", .inputs = {a, b, Int8({}, {1}), Int8({2}, {1, 2})}});
  EXPECT_EQ(y.type(), ir::kInt32);
  EXPECT_THAT(Doubles(y),
              ElementsAre(0 * 4 - 3 * 6, 0 * 4 - 3 * -10, 2 * 4 + 3 * 6, 2 * 4 + 3 * -10));
  const ir::NDArray image = Int8({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}),
                    w = Int8({1, 1, 2, 2}, {1, 0, 0, 1});
  EXPECT_THAT(Doubles(OutputOf({.op = "ConvInteger", .inputs = {image, w, Int8({}, {1})}})),
              ElementsAre(4, 6, 10, 12));
}

// Computes softmax(scale Q K^T + bias) V by its definition.
ir::NDArray AttentionOf(const ir::NDArray& q, const ir::NDArray& k, const ir::NDArray& v,
                        const std::function<double(int64_t i, int64_t j)>& bias) {
  const auto& qs = q.shape();
  const int64_t keys = k.shape()[2], size = v.shape()[3], group = qs[1] / k.shape()[1];
  ir::NDArray y(ir::kFloat32, {qs[0], qs[1], qs[2], size});
  for (int64_t b = 0; b < qs[0]; ++b) {
    for (int64_t h = 0; h < qs[1]; ++h) {
      for (int64_t i = 0; i < qs[2]; ++i) {
        std::vector<double> weights;
        double sum = 0;
        for (int64_t j = 0; j < keys; ++j) {
          double score = 0;
          for (int64_t d = 0; d < qs[3]; ++d)
            score += At(q, {b, h, i, d}) * At(k, {b, h / group, j, d});
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(qs[3])) + bias(i, j)));
          sum += weights.back();
        }
        for (int64_t d = 0; d < size; ++d) {
          double mean = 0;
          for (int64_t j = 0; j < keys; ++j)
            mean += weights[static_cast<size_t>(j)] / sum * At(v, {b, h / group, j, d});
          y.SetDouble(y.Flatten(std::vector<int64_t>{b, h, i, d}), mean);
        }
      }
    }
  }
  return y;
}

TEST(AttentionTest, ByItsDefinition) {
  const ir::NDArray q = Random({2, 4, 3, 6}, 1), k = Random({2, 2, 5, 6}, 2),
                    v = Random({2, 2, 5, 7}, 3);
  const auto none = [](int64_t, int64_t) { return 0.0; };
  ExpectNear(OutputOf({.op = "Attention", .version = 23, .inputs = {q, k, v}}),
             AttentionOf(q, k, v, none));
  ir::NDArray mask(ir::kBool, {3, 5});
  for (int64_t i : {0, 3, 6, 7, 8, 14}) mask.SetDouble(i, 1);
  ExpectNear(OutputOf({.op = "Attention", .version = 23, .inputs = {q, k, v, mask}}),
             AttentionOf(q, k, v, [&](int64_t i, int64_t j) {
               return At(mask, {i, j}) != 0 ? 0 : -INFINITY;
             }));
  ExpectNear(OutputOf({.op = "Attention",
                       .version = 23,
                       .attributes = {{"is_causal", int64_t{1}}},
                       .inputs = {q, k, v}}),
             AttentionOf(q, k, v, [](int64_t i, int64_t j) { return j <= i ? 0 : -INFINITY; }));
}

TEST(AttentionTest, HeadsSideBySideAndThePast) {
  const ir::NDArray q = Random({1, 2, 12}, 1), k = Random({1, 2, 6}, 2), v = Random({1, 2, 6}, 3);
  const ir::NDArray past_k = Random({1, 1, 3, 6}, 4), past_v = Random({1, 1, 3, 6}, 5);
  const TestAttributes heads = {
      {"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{1}}, {"is_causal", int64_t{1}}};
  const auto y = RunNode({.op = "Attention",
                          .version = 23,
                          .attributes = heads,
                          .inputs = {q, k, v, Ints({}), past_k, past_v},
                          .outputs = 3});
  const auto split = [](const ir::NDArray& x, int64_t heads) {
    const auto reshaped =
        OutputOf({.op = "Reshape", .inputs = {x, Ints({1, 2, heads, 6})}, .known = {1}});
    return OutputOf({.op = "Transpose",
                     .attributes = {{"perm", std::vector<int64_t>{0, 2, 1, 3}}},
                     .inputs = {reshaped}});
  };
  const ir::NDArray expected = AttentionOf(
      split(q, 2), y[1], y[2], [](int64_t i, int64_t j) { return j <= i + 3 ? 0 : -INFINITY; });
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t d = 0; d < 6; ++d)
        EXPECT_NEAR(At(y[0], {0, i, h * 6 + d}), At(expected, {0, h, i, d}), 1e-5);
  EXPECT_EQ(Part(y[1], 2, 0, 3), past_k);
  EXPECT_EQ(Part(y[1], 2, 3, 5), split(k, 1));
}

TEST(AttentionTest, RotaryEmbedding) {
  const ir::NDArray x = Random({1, 2, 3, 6}, 1), cosines = Random({9, 2}, 2),
                    sines = Random({9, 2}, 3);
  ir::NDArray ids(ir::kInt64, {1, 3});
  for (int64_t i = 0; i < 3; ++i) ids.SetDouble(i, static_cast<double>(8 - 3 * i));
  for (bool interleaves : {false, true}) {
    // Only the first 4 of the 6 elements are turned.
    const ir::NDArray y = OutputOf({.op = "RotaryEmbedding",
                                    .version = 23,
                                    .attributes = {{"interleaved", int64_t{interleaves}},
                                                   {"rotary_embedding_dim", int64_t{4}}},
                                    .inputs = {x, cosines, sines, ids}});
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t t = 0; t < 3; ++t) {
        for (int64_t p = 0; p < 2; ++p) {
          const int64_t first = interleaves ? 2 * p : p, second = interleaves ? 2 * p + 1 : p + 2;
          const double c = At(cosines, {8 - 3 * t, p}), s = At(sines, {8 - 3 * t, p});
          const double a = At(x, {0, h, t, first}), b = At(x, {0, h, t, second});
          EXPECT_NEAR(At(y, {0, h, t, first}), c * a - s * b, 1e-5);
          EXPECT_NEAR(At(y, {0, h, t, second}), s * a + c * b, 1e-5);
        }
        EXPECT_EQ(At(y, {0, h, t, 5}), At(x, {0, h, t, 5}));
      }
    }
  }
}

TEST(NormalizationRulesTest, ScalesOfGroupsAndOfChannels) {
  const ir::NDArray x = Random({2, 4, 3}, 1);
  const ir::NDArray of_groups =
      OutputOf({.op = "GroupNormalization",
                .version = 18,
                .attributes = {{"num_groups", int64_t{2}}},
                .inputs = {x, Floats({2}, {2, 3}), Floats({2}, {1, -1})}});
  const ir::NDArray of_channels =
      OutputOf({.op = "GroupNormalization",
                .version = 21,
                .attributes = {{"num_groups", int64_t{2}}},
                .inputs = {x, Floats({4}, {2, 2, 3, 3}), Floats({4}, {1, 1, -1, -1})}});
  ExpectNear(of_groups, of_channels);
}

// Returns the first output of a batch normalization of 1 and 3, whose running mean is 10 and whose
// running variance is 4. Nobody reads its other outputs.
std::vector<double> BatchNormalized(int version, const std::vector<std::string>& outputs,
                                    TestAttributes attributes = {}) {
  TestModel model(version);
  model.Input("x", "float32", {2, 1});
  for (const auto& [name, value] :
       {std::pair("scale", 1.0), {"bias", 0.0}, {"mean", 10.0}, {"variance", 4.0}})
    model.Initializer(name, Floats({1}, {value}));
  attributes["epsilon"] = 1e-12;
  model.Node("BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, outputs, attributes);
  model.Output("y");
  return Doubles(model.Run({Floats({2, 1}, {1, 3})})[0]);
}

TEST(NormalizationRulesTest, ABatchNormalizationBefore14TrainsIfItNamesMoreOutputs) {
  const auto by_running = Pointwise(DoubleNear(1e-5), {-4.5, -3.5});
  const auto by_batch = Pointwise(DoubleNear(1e-5), {-1.0, 1.0});
  for (const int version : {6, 7, 9, 13}) {
    EXPECT_THAT(BatchNormalized(version, {"y"}), by_running) << version;
    EXPECT_THAT(BatchNormalized(version, {"y", "", "", "", ""}), by_running) << version;
    EXPECT_THAT(BatchNormalized(version, {"y", "m", "v"}), by_batch) << version;
    EXPECT_THAT(BatchNormalized(version, {"y", "", "", "s", "t"}), by_batch) << version;
  }
  EXPECT_THAT(BatchNormalized(6, {"y", "m", "v"}, {{"is_test", int64_t{1}}}), by_running);
  EXPECT_THAT(BatchNormalized(14, {"y", "m", "v"}), by_running);
  EXPECT_THAT(BatchNormalized(14, {"y", "m", "v"}, {{"training_mode", int64_t{1}}}), by_batch);
}

TEST(NormalizationRulesTest, RootOfMeanOfSquares) {
  const ir::NDArray y = OutputOf({.op = "RMSNormalization",
                                  .version = 23,
                                  .inputs = {Floats({1, 2}, {3, 4}), Floats({2}, {1, 10})}});
  const double root = std::sqrt(12.5);
  EXPECT_THAT(Doubles(y), Pointwise(DoubleNear(1e-4), {3 / root, 40 / root}));
}

::onnx::GraphProto Branch(const std::string& op) {
  return Subgraph([&](TestGraph& g) {
    // x0 belongs to the graph around this one.
    g.Node(op, {"x0"}, {op});
    g.Output(op);
  });
}

TEST(ControlTest, BothBranchesOfAComputedCondition) {
  TestModel model;
  model.Input("x0", "float32", {2});
  model.Input("c", "bool", {});
  model.Node("If", {"c"}, {"y"}, {{"then_branch", Branch("Neg")}, {"else_branch", Branch("Abs")}});
  model.Output("y");
  const ir::NDArray x = Floats({2}, {-1, 2}), yes(ir::kBool, {}, std::vector<double>{1}),
                    no(ir::kBool, {});
  EXPECT_THAT(model.Run({x, yes}), ElementsAre(Floats({2}, {1, -2})));
  EXPECT_THAT(model.Run({x, no}), ElementsAre(Floats({2}, {1, 2})));
  // If the condition is known, only the branch that is taken has to be valid.
  TestModel known;
  known.Input("x0", "float32", {2});
  known.Initializer("c", yes);
  known.Node("If", {"c"}, {"y"},
             {{"then_branch", Branch("Neg")}, {"else_branch", Branch("NoSuchOperator")}});
  known.Output("y");
  EXPECT_THAT(known.Run({x}), ElementsAre(Floats({2}, {1, -2})));
}

TEST(ControlTest, LoopsOfKnownCounts) {
  // Each iteration computes v = v + x0; rows of v are squared.
  const auto body = Subgraph([](TestGraph& g) {
    g.Input("i", "int64", {});
    g.Input("c", "bool", {});
    g.Input("v", "float32", {2});
    g.Node("Add", {"v", "x0"}, {"w"});
    g.Node("Mul", {"w", "w"}, {"row"});
    for (const char* name : {"c", "w", "row"}) g.Output(name);
  });
  TestModel model;
  model.Input("x0", "float32", {2});
  model.Input("v0", "float32", {2});
  model.Ints("count", {3});
  model.Node("Loop", {"count", "", "v0"}, {"v_last", "rows"}, {{"body", body}});
  model.Output("v_last");
  model.Output("rows");
  EXPECT_THAT(model.Run({Floats({2}, {1, 2}), Floats({2}, {0, 0})}),
              ElementsAre(Floats({2}, {3, 6}), Floats({3, 2}, {1, 4, 4, 16, 9, 36})));
}

TEST(ControlTest, ScansForwardsAndBackwards) {
  const auto body = Subgraph([](TestGraph& g) {
    g.Input("sum", "float32", {2});
    g.Input("row", "float32", {2});
    g.Node("Add", {"sum", "row"}, {"next"});
    g.Node("Identity", {"next"}, {"out"});
    g.Output("next");
    g.Output("out");
  });
  const ir::NDArray x = Floats({2, 3}, {1, 2, 3, 10, 20, 30});
  TestNode node{.op = "Scan",
                .attributes = {{"body", body},
                               {"num_scan_inputs", int64_t{1}},
                               {"scan_input_axes", std::vector<int64_t>{1}},
                               {"scan_output_axes", std::vector<int64_t>{-1}}},
                .inputs = {Floats({2}, {0, 0}), x},
                .outputs = 2};
  EXPECT_THAT(RunNode(node),
              ElementsAre(Floats({2}, {6, 60}), Floats({2, 3}, {1, 3, 6, 10, 30, 60})));
  node.attributes["scan_input_directions"] = std::vector<int64_t>{1};
  EXPECT_EQ(RunNode(node)[1], Floats({2, 3}, {3, 5, 6, 30, 50, 60}));
  node.attributes["scan_output_directions"] = std::vector<int64_t>{1};
  EXPECT_EQ(RunNode(node)[1], Floats({2, 3}, {6, 5, 3, 60, 50, 30}));
}

// Version 8 scans a batch of sequences, some of which are shorter.
TEST(ControlTest, ScansOfABatch) {
  const auto body = Subgraph([](TestGraph& g) {
    g.Input("sum", "float32", {1});
    g.Input("row", "float32", {1});
    g.Node("Add", {"sum", "row"}, {"next"});
    g.Node("Identity", {"next"}, {"out"});
    g.Output("next");
    g.Output("out");
  });
  TestNode node{
      .op = "Scan",
      .version = 8,
      .attributes = {{"body", body}, {"num_scan_inputs", int64_t{1}}},
      .inputs = {Ints({}), Floats({2, 1}, {0, 100}), Floats({2, 3, 1}, {1, 2, 3, 10, 20, 30})},
      .outputs = 2};
  EXPECT_THAT(RunNode(node),
              ElementsAre(Floats({2, 1}, {6, 160}), Floats({2, 3, 1}, {1, 3, 6, 110, 130, 160})));
  node.inputs[0] = Ints({3, 2});
  node.known = {0};
  EXPECT_THAT(RunNode(node),
              ElementsAre(Floats({2, 1}, {6, 130}), Floats({2, 3, 1}, {1, 3, 6, 110, 130, 0})));
  node.attributes["directions"] = std::vector<int64_t>{1};
  EXPECT_EQ(RunNode(node)[1], Floats({2, 3, 1}, {3, 5, 6, 120, 130, 0}));
  node.inputs[0] = Ints({3, 4});
  EXPECT_THAT(TryNode(node),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("a length of 4, expected 0 to 3")));
}

TEST(ConvolutionRulesTest, OneGroupForEachChannel) {
  const ir::NDArray x = SmallFloats({1, 2, 4, 4}, 1), w = SmallFloats({4, 1, 3, 3}, 2),
                    b = SmallFloats({4}, 3);
  const ir::NDArray y = OutputOf(
      {.op = "Conv", .attributes = {{"group", int64_t{2}}}, .inputs = {x, w, b}, .known = {1, 2}});
  ASSERT_EQ(y.shape(), (std::vector<int64_t>{1, 4, 2, 2}));
  for (int64_t c = 0; c < 4; ++c) {
    double sum = b.GetDouble(c);
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 3; ++j) sum += At(x, {0, c / 2, i + 1, j}) * At(w, {c, 0, i, j});
    EXPECT_EQ(At(y, {0, c, 1, 0}), sum);
  }
}

TEST(SelectionTest, EqualElementsKeepTheirOrder) {
  const ir::NDArray x = Floats({6}, {1, 3, 3, -INFINITY, INFINITY, 3});
  const auto places = [&](int64_t largest) {
    return Doubles(RunNode({.op = "TopK",
                            .attributes = {{"largest", largest}},
                            .inputs = {x, Ints({4})},
                            .known = {1},
                            .outputs = 2})[1]);
  };
  EXPECT_THAT(places(1), ElementsAre(4, 1, 2, 5));
  EXPECT_THAT(places(0), ElementsAre(3, 0, 1, 2));
}

// PyTorch and numpy order NaN behind all numbers.
TEST(SelectionTest, NaNIsTheLargest) {
  const ir::NDArray x = Floats({6}, {1, NAN, 3, -INFINITY, NAN, INFINITY});
  const auto run = [&](int64_t largest) {
    return RunNode({.op = "TopK",
                    .attributes = {{"largest", largest}},
                    .inputs = {x, Ints({5})},
                    .known = {1},
                    .outputs = 2});
  };
  const std::vector<ir::NDArray> largest = run(1), smallest = run(0);
  EXPECT_THAT(Doubles(largest[1]), ElementsAre(1, 4, 5, 2, 0));
  EXPECT_TRUE(std::isnan(largest[0].GetDouble(0)) && std::isnan(largest[0].GetDouble(1)));
  EXPECT_EQ(largest[0].GetDouble(2), INFINITY);
  EXPECT_THAT(Doubles(smallest[1]), ElementsAre(3, 0, 2, 5, 1));
}

// The expected results for NaN and infinities are numpy's.
TEST(SpecialValuesTest, NaNIsNotForgotten) {
  const auto expect_same = [](const TestNode& node, const std::vector<double>& want) {
    const ir::NDArray got = OutputOf(node);
    ASSERT_EQ(got.num_elements(), std::ssize(want)) << node.op;
    for (int64_t i = 0; i < got.num_elements(); ++i) {
      const double y = got.GetDouble(i), x = want[static_cast<size_t>(i)];
      EXPECT_TRUE(y == x || std::abs(y - x) < 1e-6 || (std::isnan(y) && std::isnan(x)))
          << node.op << ": element " << i << " is " << y << ", expected " << x;
    }
  };
  const ir::NDArray x = Floats({1, 5}, {9, NAN, 1, INFINITY, -INFINITY});
  const ir::NDArray sevens = Floats({1, 5}, {7, 7, NAN, 7, 7});
  expect_same({.op = "Relu", .inputs = {x}}, {9, NAN, 1, INFINITY, 0});
  expect_same({.op = "Clip", .inputs = {x, Floats({}, {0}), Floats({}, {6})}, .known = {1, 2}},
              {6, NAN, 1, 6, 0});
  expect_same({.op = "Clip", .inputs = {x, Floats({}, {0}), Floats({}, {6})}}, {6, NAN, 1, 6, 0});
  expect_same({.op = "Max", .inputs = {x, sevens}}, {9, NAN, NAN, INFINITY, 7});
  expect_same({.op = "Min", .inputs = {x, sevens}}, {7, NAN, NAN, 7, -INFINITY});
  expect_same({.op = "LeakyRelu", .attributes = {{"alpha", 0.5}}, .inputs = {x}},
              {9, NAN, 1, INFINITY, -INFINITY});
  expect_same({.op = "HardSigmoid", .inputs = {x}}, {1, NAN, 0.7, 1, 0});
  expect_same({.op = "Abs", .inputs = {x}}, {9, NAN, 1, INFINITY, INFINITY});
  expect_same({.op = "Sign", .inputs = {x}}, {1, NAN, 1, 1, -1});
  expect_same({.op = "Asin", .inputs = {x}}, {NAN, NAN, std::asin(1.0), NAN, NAN});
  expect_same({.op = "Mod", .attributes = {{"fmod", int64_t{1}}}, .inputs = {sevens, x}},
              {7, NAN, NAN, 7, 7});
  const TestAttributes rows = {{"axes", std::vector<int64_t>{1}}};
  expect_same({.op = "ReduceMax", .attributes = rows, .inputs = {x}}, {NAN});
  expect_same({.op = "ReduceMin", .attributes = rows, .inputs = {x}}, {NAN});
  const ir::NDArray twice = Floats({1, 5}, {1, NAN, 9, NAN, INFINITY});
  for (const char* op : {"ArgMax", "ArgMin"})
    expect_same({.op = op, .attributes = {{"axis", int64_t{1}}}, .inputs = {twice}}, {1});
  expect_same({.op = "ArgMax",
               .attributes = {{"axis", int64_t{1}}, {"select_last_index", int64_t{1}}},
               .inputs = {twice}},
              {3});
  expect_same({.op = "Hardmax", .inputs = {twice}}, {0, 1, 0, 0, 0});
  expect_same({.op = "Softmax", .inputs = {twice}}, {NAN, NAN, NAN, NAN, NAN});
  const ir::NDArray image = Floats({1, 1, 5}, {9, NAN, 1, -INFINITY, -INFINITY});
  expect_same({.op = "MaxPool",
               .attributes = {{"kernel_shape", std::vector<int64_t>{2}},
                              {"pads", std::vector<int64_t>{1, 1}}},
               .inputs = {image}},
              {9, NAN, NAN, 1, -INFINITY, -INFINITY});
  for (const double infinity : {INFINITY, -INFINITY}) {
    expect_same({.op = "ReduceLogSumExp",
                 .attributes = rows,
                 .inputs = {Floats({1, 2}, {infinity, infinity})}},
                {infinity});
  }
}

}  // namespace
}  // namespace kiln::frontend
