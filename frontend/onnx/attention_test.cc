// Compares Attention with plain loops: masks of all types and shapes, rows that see nothing,
// windows and caches.
#include "graph/attention.h"

#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "base/status_testing.h"
#include "frontend/onnx/model_testing.h"

namespace kiln::frontend {
namespace {

using ::testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kBatch = 2, kHeads = 2, kQueries = 3, kKeys = 5, kSize = 4;

// Number that is added to the score of a query and a key.
using Bias = std::function<double(int64_t b, int64_t h, int64_t i, int64_t j)>;

struct Inputs {
  ir::NDArray q = SmallFloats({kBatch, kHeads, kQueries, kSize}, 1);
  ir::NDArray k = SmallFloats({kBatch, kHeads, kKeys, kSize}, 2);
  ir::NDArray v = SmallFloats({kBatch, kHeads, kKeys, kSize}, 3);
};

double At(const ir::NDArray& array, std::vector<int64_t> index) {
  return array.GetDouble(array.Flatten(index));
}

double Score(const Inputs& x, int64_t b, int64_t h, int64_t i, int64_t j) {
  double score = 0;
  for (int64_t d = 0; d < kSize; ++d) score += At(x.q, {b, h, i, d}) * At(x.k, {b, h, j, d});
  return score / std::sqrt(static_cast<double>(kSize));
}

// Returns the expected output. Rows that see nothing are 0.
ir::NDArray Expected(const Inputs& x, const Bias& bias, double softcap = 0) {
  ir::NDArray y(ir::kFloat32, {kBatch, kHeads, kQueries, kSize});
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t h = 0; h < kHeads; ++h) {
      for (int64_t i = 0; i < kQueries; ++i) {
        double weights[kKeys], sum = 0;
        for (int64_t j = 0; j < kKeys; ++j) {
          double score = Score(x, b, h, i, j);
          if (softcap > 0) score = softcap * std::tanh(score / softcap);
          sum += weights[j] = std::exp(score + bias(b, h, i, j));
        }
        for (int64_t d = 0; d < kSize; ++d) {
          double mean = 0;
          for (int64_t j = 0; j < kKeys; ++j)
            mean += sum == 0 ? 0 : weights[j] / sum * At(x.v, {b, h, j, d});
          y.SetDouble(y.Flatten(std::vector<int64_t>{b, h, i, d}), mean);
        }
      }
    }
  }
  return y;
}

TestNode NodeOf(const Inputs& x, const std::optional<ir::NDArray>& mask,
                const TestAttributes& attributes, int version = 23) {
  TestNode node{
      .op = "Attention", .version = version, .attributes = attributes, .inputs = {x.q, x.k, x.v}};
  if (mask) node.inputs.push_back(*mask);
  return node;
}

void ExpectNear(const ir::NDArray& found, const ir::NDArray& expected, const std::string& what) {
  SCOPED_TRACE(what);
  EXPECT_OK(ir::Compare(found, expected, {.relative = 1e-4, .absolute = 1e-4}));
}

// Returns a mask that shows some of the keys, and no key in row 1 if it has rows.
ir::NDArray BoolMask(const std::vector<int64_t>& shape) {
  ir::NDArray mask(ir::kBool, shape);
  const int64_t rows = shape.size() > 1 ? shape[shape.size() - 2] : 1;
  for (int64_t at = 0; at < mask.num_elements(); ++at) {
    const int64_t row = at / shape.back() % rows;
    mask.SetDouble(at, row != 1 && at % 3 != 1 ? 1 : 0);
  }
  return mask;
}

// Returns the element of a mask for a score, by numpy's broadcast.
double MaskAt(const ir::NDArray& mask, std::vector<int64_t> index) {
  std::vector<int64_t> at(index.end() - mask.rank(), index.end());
  for (size_t d = 0; d < at.size(); ++d) at[d] %= mask.shape()[d];
  return At(mask, at);
}

const std::vector<std::vector<int64_t>> kShapes = {{kKeys},
                                                   {kQueries, kKeys},
                                                   {1, kKeys},
                                                   {kHeads, 1, kKeys},
                                                   {kBatch, 1, kQueries, kKeys},
                                                   {kBatch, kHeads, kQueries, kKeys}};

TEST(AttentionMaskTest, BoolsOfAllShapes) {
  const Inputs x;
  for (const auto& shape : kShapes) {
    const ir::NDArray mask = BoolMask(shape);
    for (int64_t causal : {0, 1}) {
      const ir::NDArray want = Expected(x, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
        const bool sees = MaskAt(mask, {b, h, i, j}) != 0 && (causal == 0 || j <= i);
        return sees ? 0 : -kInf;
      });
      TestNode node = NodeOf(x, mask, {{"is_causal", causal}});
      ExpectNear(RunNode(node)[0], want, "given");
      node.known = {3};
      ExpectNear(RunNode(node)[0], want, "a constant");
    }
  }
}

// Numbers are added to the scores, whatever their type.
TEST(AttentionMaskTest, NumbersOfAllTypes) {
  const Inputs x;
  for (const ir::Type type : {ir::kFloat32, ir::kFloat16, ir::kBFloat16, ir::kFloat64, ir::kInt8,
                              ir::kInt16, ir::kInt32, ir::kInt64, ir::kUInt8, ir::kUInt16}) {
    for (const auto& shape : kShapes) {
      ir::NDArray mask(type, shape);
      for (int64_t at = 0; at < mask.num_elements(); ++at)
        mask.SetDouble(at, type.is_float() && at % 4 == 1 ? -kInf : static_cast<double>(at % 3));
      for (int64_t causal : {0, 1}) {
        const ir::NDArray want = Expected(x, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
          return causal != 0 && j > i ? -kInf : MaskAt(mask, {b, h, i, j});
        });
        ExpectNear(RunNode(NodeOf(x, mask, {{"is_causal", causal}}))[0], want,
                   std::string(ir::TypeName(type)));
      }
    }
  }
}

TEST(AttentionMaskTest, RowsThatSeeNothingAreZeros) {
  const Inputs x;
  ir::NDArray mask(ir::kFloat32, {kQueries, kKeys});
  mask.Fill(-kInf);
  const ir::NDArray none = RunNode(NodeOf(x, mask, {}))[0];
  for (int64_t i = 0; i < none.num_elements(); ++i) EXPECT_EQ(none.GetDouble(i), 0);
  // The probabilities are 0, too.
  TestNode node = NodeOf(x, mask, {{"qk_matmul_output_mode", int64_t{3}}});
  node.outputs = 4;
  const ir::NDArray weights = RunNode(node)[3];
  for (int64_t i = 0; i < weights.num_elements(); ++i) EXPECT_EQ(weights.GetDouble(i), 0);
  // A NaN stays a NaN.
  mask.SetDouble(0, std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(RunNode(NodeOf(x, mask, {}))[0].GetDouble(0)));
}

// Hidden keys stay hidden, however small the cap is.
TEST(AttentionMaskTest, TheSoftcapComesBeforeTheMask) {
  const Inputs x;
  const ir::NDArray want =
      Expected(x, [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i ? 0 : -kInf; }, 0.5);
  ExpectNear(RunNode(NodeOf(x, std::nullopt, {{"is_causal", int64_t{1}}, {"softcap", 0.5}}))[0],
             want, "softcap");
}

TEST(AttentionMaskTest, ScoresAtAllStages) {
  const Inputs x;
  ir::NDArray mask(ir::kFloat32, {kQueries, kKeys});
  mask.Fill(2);
  for (int64_t mode : {0, 1, 2}) {
    TestNode node = NodeOf(x, mask, {{"softcap", 1.5}, {"qk_matmul_output_mode", mode}});
    node.outputs = 4;
    const ir::NDArray scores = RunNode(node)[3];
    double want = Score(x, 1, 0, 2, 3);
    if (mode > 0) want = 1.5 * std::tanh(want / 1.5);
    if (mode > 1) want += 2;
    EXPECT_NEAR(At(scores, {1, 0, 2, 3}), want, 1e-5) << mode;
  }
  EXPECT_THAT(TryNode(NodeOf(x, mask, {{"qk_matmul_output_mode", int64_t{4}}})),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("qk_matmul_output_mode is 4")));
}

TEST(AttentionMaskTest, Windows) {
  const Inputs x;
  const ir::NDArray want = Expected(x, [](int64_t, int64_t, int64_t i, int64_t j) {
    return j >= i - 1 && j <= i + 2 ? 0 : -kInf;
  });
  ExpectNear(
      RunNode(NodeOf(x, std::nullopt,
                     {{"left_window_size", int64_t{1}}, {"right_window_size", int64_t{2}}}, 25))[0],
      want, "window");
}

// Each element of the batch has keys up to a number; the queries' own keys are the last of them.
TEST(AttentionMaskTest, CachesThatAreNotFull) {
  const Inputs x;
  const int64_t valid[] = {4, 2};
  for (int64_t causal : {0, 1}) {
    const ir::NDArray want = Expected(x, [&](int64_t b, int64_t, int64_t i, int64_t j) {
      const bool sees = j < valid[b] && (causal == 0 || j <= i + valid[b] - kQueries);
      return sees ? 0 : -kInf;
    });
    TestModel model(24);
    model.Input("q", "float32", x.q.shape());
    model.Input("k", "float32", x.k.shape());
    model.Input("v", "float32", x.v.shape());
    model.Input("n", "int64", {kBatch});
    model.Node("Attention", {"q", "k", "v", "", "", "", "n"}, {"y"}, {{"is_causal", causal}});
    model.Output("y");
    ExpectNear(model.Run({x.q, x.k, x.v, Ints({valid[0], valid[1]})})[0], want, "nonpad");
  }
}

// Masks do not keep a target from computing attention by one kernel.
TEST(AttentionMaskTest, IsOneChain) {
  for (const char* type : {"bool", "float16"}) {
    TestModel model(23);
    for (const char* name : {"q", "k", "v"}) model.Input(name, "float16", {1, 2, 64, 32});
    model.Input("m", type, {64, 64});
    model.Node("Attention", {"q", "k", "v", "m"}, {"y"});
    model.Output("y");
    ASSERT_OK_AND_ASSIGN(const graph::Graph graph, model.Import());
    EXPECT_EQ(graph::FindAttention(graph).size(), 1u) << type;
  }
}

}  // namespace
}  // namespace kiln::frontend
