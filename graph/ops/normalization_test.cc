#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "graph/run_op_testing.h"

namespace kiln::graph {
namespace {

using ir::NDArray;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

NDArray Random(std::vector<int64_t> shape, uint64_t seed, ir::Type type = ir::kFloat32) {
  NDArray array(type, std::move(shape));
  array.FillRandom(seed);
  return array;
}

void ExpectNear(const NDArray& found, const std::function<double(const Index&)>& want,
                double tolerance = 2e-5) {
  EXPECT_OK(ir::Compare(found, ArrayOf(found.type(), found.shape(), want),
                        {.relative = tolerance, .absolute = tolerance}));
}

// Mean and variance of the elements whose index is in the group.
struct Moments {
  double mean = 0, variance = 0, squares = 0;
};
Moments MomentsOf(const NDArray& x, const std::function<bool(const Index&)>& is_in) {
  Moments m;
  double count = 0;
  ForEachIndex(x.shape(), [&](const Index& index) {
    if (!is_in(index)) return;
    const double v = ElementAt(x, index);
    m.mean += v;
    m.squares += v * v;
    ++count;
  });
  m.mean /= count;
  m.squares /= count;
  m.variance = m.squares - m.mean * m.mean;
  return m;
}

TEST(SoftmaxTest, AlongAnyAxis) {
  const NDArray x = Random({2, 3, 4}, 1);
  for (int axis : {0, 1, 2, -1}) {
    const size_t at = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
    const auto sum = [&](Index index) {
      double total = 0;
      for (index[at] = 0; index[at] < x.shape()[at]; ++index[at])
        total += std::exp(ElementAt(x, index));
      return total;
    };
    ExpectNear(RunOp(fmt::format("softmax(a) {{axis: {}}}", axis), {x}),
               [&](const Index& i) { return std::exp(ElementAt(x, i)) / sum(i); });
    ExpectNear(RunOp(fmt::format("log_softmax(a) {{axis: {}}}", axis), {x}),
               [&](const Index& i) { return ElementAt(x, i) - std::log(sum(i)); });
  }
  const NDArray large = Array(ir::kFloat32, {2}, {1000, 1000});
  EXPECT_THAT(Doubles(RunOp("softmax(a)", {large})), ElementsAre(0.5, 0.5));
  EXPECT_NEAR(Doubles(RunOp("log_softmax(a)", {large}))[0], -std::log(2), 1e-6);
  const NDArray apart = Array(ir::kFloat32, {2}, {0, 1000});
  EXPECT_THAT(Doubles(RunOp("log_softmax(a)", {apart})), ElementsAre(-1000, 0));
  EXPECT_EQ(RunOp("log_softmax(a)", {Random({4}, 1, ir::kFloat16)}).type(), ir::kFloat16);
}

TEST(NormalizationTest, AreTheLibrarysOperators) {
  for (ir::Type type : {ir::kFloat32, ir::kFloat16}) {
    const TensorType x{type, {6, 8}}, row{type, {8}};
    const auto same = [&](std::string_view op, std::string_view args, std::string_view call,
                          const std::vector<TensorType>& inputs) {
      const StatusOr<dag::DagPtr> want = dag::BuildOp(op, args, {.dtype = type});
      ASSERT_OK(want);
      EXPECT_TRUE(dag::Equal(*DagOf(call, inputs), **want)) << call;
    };
    same("softmax", "6,8", "softmax(a)", {x});
    same("layer_norm", "6,8", "layer_norm(a, b, c)", {x, row, row});
    same("rms_norm", "6,8", "rms_norm(a, b)", {x, row});
  }
}

TEST(LayerNormTest, OverTheLastAxes) {
  const NDArray x = Random({2, 3, 4}, 1), scale = Random({3, 4}, 2), bias = Random({4}, 3);
  const auto moments = [&](const Index& i) {
    return MomentsOf(x, [&](const Index& j) { return j[0] == i[0]; });
  };
  ExpectNear(RunOp("layer_norm(a, b, c) {axis: 1, epsilon: 0.125}", {x, scale, bias}),
             [&](const Index& i) {
               const Moments m = moments(i);
               return (ElementAt(x, i) - m.mean) / std::sqrt(m.variance + 0.125) *
                          ElementAt(scale, {i[1], i[2]}) +
                      ElementAt(bias, {i[2]});
             });
  ExpectNear(RunOp("layer_norm(a) {axis: -2}", {x}), [&](const Index& i) {
    return (ElementAt(x, i) - moments(i).mean) / std::sqrt(moments(i).variance + 1e-5);
  });
  ExpectNear(RunOp("layer_norm(a, _, b) {axis: 1}", {x, bias}), [&](const Index& i) {
    return (ElementAt(x, i) - moments(i).mean) / std::sqrt(moments(i).variance + 1e-5) +
           ElementAt(bias, {i[2]});
  });
  ExpectNear(RunOp("rms_norm(a, b) {axis: 1, epsilon: 0.5}", {x, scale}), [&](const Index& i) {
    return ElementAt(x, i) / std::sqrt(moments(i).squares + 0.5) * ElementAt(scale, {i[1], i[2]});
  });
  ExpectNear(RunOp("rms_norm(a)", {x}), [&](const Index& i) {
    const Moments m = MomentsOf(x, [&](const Index& j) { return j[0] == i[0] && j[1] == i[1]; });
    return ElementAt(x, i) / std::sqrt(m.squares + 1e-5);
  });
}

TEST(BatchNormTest, ByGivenVectors) {
  const NDArray x = Random({2, 3, 4}, 1), scale = Random({3}, 2), bias = Random({3}, 3),
                mean = Random({3}, 4), variance = Array(ir::kFloat32, {3}, {0.5, 1, 2});
  ExpectNear(RunOp("batch_norm(a, b, c, d, e)", {x, scale, bias, mean, variance}),
             [&](const Index& i) {
               const Index c = {i[1]};
               return (ElementAt(x, i) - ElementAt(mean, c)) /
                          std::sqrt(ElementAt(variance, c) + 1e-5) * ElementAt(scale, c) +
                      ElementAt(bias, c);
             });
  // Vectors may be float32 even if x is not; the result is rounded once.
  NDArray half = Random({2, 3, 4}, 1, ir::kFloat16);
  const NDArray y = RunOp("batch_norm(a, b, c, d, e)", {half, scale, bias, mean, variance});
  ASSERT_EQ(y.type(), ir::kFloat16);
  ExpectNear(
      y,
      [&](const Index& i) {
        const Index c = {i[1]};
        return (ElementAt(half, i) - ElementAt(mean, c)) /
                   std::sqrt(ElementAt(variance, c) + 1e-5) * ElementAt(scale, c) +
               ElementAt(bias, c);
      },
      1e-3);
}

TEST(GroupNormTest, GroupsOfChannels) {
  const NDArray x = Random({2, 6, 3, 2}, 1), scale = Random({6}, 2), bias = Random({6}, 3);
  for (int groups : {1, 2, 3, 6}) {
    const int channels = 6 / groups;
    const auto want = [&](const Index& i) {
      const Moments m = MomentsOf(
          x, [&](const Index& j) { return j[0] == i[0] && j[1] / channels == i[1] / channels; });
      return (ElementAt(x, i) - m.mean) / std::sqrt(m.variance + 0.01) * ElementAt(scale, {i[1]}) +
             ElementAt(bias, {i[1]});
    };
    ExpectNear(RunOp(fmt::format("group_norm(a, b, c) {{groups: {}, epsilon: 0.01}}", groups),
                     {x, scale, bias}),
               want);
    const NDArray last = RunOp(
        fmt::format("group_norm(a, b, c) {{groups: {}, epsilon: 0.01, channels_last: 1}}", groups),
        {Permuted(x, {0, 2, 3, 1}), scale, bias});
    ExpectNear(Permuted(last, {0, 3, 1, 2}), want);
    if (groups != 6) continue;
    ExpectNear(RunOp("instance_norm(a, b, c) {epsilon: 0.01}", {x, scale, bias}), want);
    ExpectNear(Permuted(RunOp("instance_norm(a, b, c) {epsilon: 0.01, channels_last: 1}",
                              {Permuted(x, {0, 2, 3, 1}), scale, bias}),
                        {0, 3, 1, 2}),
               want);
  }
  // Without an image a group has only its channels.
  const NDArray rows = Random({3, 6}, 5);
  ExpectNear(RunOp("group_norm(a, b, c) {groups: 2}", {rows, scale, bias}), [&](const Index& i) {
    const Moments m =
        MomentsOf(rows, [&](const Index& j) { return j[0] == i[0] && j[1] / 3 == i[1] / 3; });
    return (ElementAt(rows, i) - m.mean) / std::sqrt(m.variance + 1e-5) * ElementAt(scale, {i[1]}) +
           ElementAt(bias, {i[1]});
  });
}

TEST(LrnTest, SumsAcrossChannels) {
  const NDArray x = Random({1, 5, 2}, 1);
  for (int64_t size : {1, 2, 3, 4, 9}) {
    ExpectNear(
        RunOp(fmt::format("lrn(a) {{size: {}, alpha: 0.5, beta: 0.75, bias: 2}}", size), {x}),
        [&](const Index& i) {
          double sum = 0;
          for (int64_t c = i[1] - (size - 1) / 2; c <= i[1] + size / 2; ++c) {
            if (c >= 0 && c < 5) sum += std::pow(ElementAt(x, {i[0], c, i[2]}), 2);
          }
          const double base = 2 + 0.5 / static_cast<double>(size) * sum;
          return ElementAt(x, i) / std::pow(base, 0.75);
        });
  }
}

TEST(NormalizationTest, Refuses) {
  const NDArray x(ir::kFloat32, {2, 3, 4}), ints(ir::kInt32, {2, 3, 4}), four(ir::kFloat32, {4}),
      three(ir::kFloat32, {3}), flat(ir::kFloat32, {3}), scalar(ir::kFloat32, {});
  struct Refused {
    std::string_view call;
    std::vector<NDArray> inputs;
    std::string_view message;
  };
  const Refused cases[] = {
      {"softmax(a) {axis: 3}", {x}, "axis = 3 of a tensor with 3 dimensions"},
      {"softmax(a)", {scalar}, "axis = -1 of a tensor with 0 dimensions"},
      {"softmax(a)", {ints}, "input of int32, expected a float type"},
      {"log_softmax(a)", {ints}, "input of int32, expected a float type"},
      {"layer_norm(a, b)", {x, three}, "input 1 of shape [3] does not broadcast to [4]"},
      {"layer_norm(a, b)", {x, x}, "input 1 of shape [2, 3, 4] does not broadcast to [4]"},
      {"rms_norm(a, b)", {x, ints}, "input of int32, expected a float type"},
      {"batch_norm(a, b, b, b, c)", {x, three, four}, "input 4 of shape [4], expected [3]"},
      {"batch_norm(a, b, b, b, b) {axis: 7}", {x, three}, "axis = 7"},
      {"instance_norm(a, b, b)", {flat, three}, "input 0 has 1 dimension, expected at least 3"},
      {"group_norm(a, b, b) {groups: 2}", {x, three}, "groups = 2 must divide 3 channels"},
      {"group_norm(a, b, b) {groups: 0}", {x, three}, "groups = 0, expected 1 to"},
      {"group_norm(a, b, b) {groups: 3}", {x, four}, "input 1 of shape [4], expected [3]"},
      {"group_norm(a, b, b) {groups: 1}", {flat, three}, "expected at least 2"},
      {"lrn(a) {size: 0}", {x}, "size = 0, expected 1 to"},
      {"lrn(a) {size: 9223372036854775807}", {x}, "expected 1 to"},
  };
  for (const Refused& c : cases)
    EXPECT_THAT(RefusalOf(c.call, c.inputs), HasSubstr(c.message)) << c.call;
}

}  // namespace
}  // namespace kiln::graph
