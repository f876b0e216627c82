// Operators of the library against their definitions, written as plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "base/status_testing.h"
#include "compiler/dag/evaluate.h"
#include "compiler/dag/ops/op_cases_testing.h"

namespace kiln::dag {
namespace {

using ir::NDArray;
using Index = std::vector<int64_t>;

// The inputs of an operator by name.
class Tensors {
 public:
  Tensors(const Dag& dag, std::span<const NDArray> inputs) {
    for (Tensor t : dag.arguments()) {
      const Operator& op = dag.op(t.op);
      if (op.is_placeholder()) by_name_.emplace(op.name(), &inputs[by_name_.size()]);
    }
  }
  double operator()(const std::string& name, const Index& at) const {
    const NDArray& array = *by_name_.at(name);
    const int64_t flat = array.Flatten(at);
    KILN_CHECK(flat >= 0, "{}[{}]", name, fmt::join(at, ", "));
    return array.GetDouble(flat);
  }
  double Flat(const std::string& name, int64_t flat) const {
    return by_name_.at(name)->GetDouble(flat);
  }

 private:
  std::map<std::string, const NDArray*> by_name_;
};

// Returns the element of the result at an index.
using Definition = std::function<double(const Tensors& in, const Index& at)>;

void Check(std::string_view op, std::string_view args, const Definition& definition,
           ir::Type type = ir::kFloat64) {
  SCOPED_TRACE(fmt::format("{} {}", op, args));
  ASSERT_OK_AND_ASSIGN(DagPtr dag, BuildOp(op, args, {.dtype = type}));
  for (uint64_t seed : {3, 4}) {
    const std::vector<NDArray> inputs = RandomInputs(*dag, seed);
    ASSERT_OK_AND_ASSIGN(const auto outputs, Evaluate(*dag, inputs));
    const Tensors in(*dag, inputs);
    for (int64_t i = 0; i < outputs[0].num_elements(); ++i) {
      const Index at = outputs[0].Unflatten(i);
      ASSERT_NEAR(outputs[0].GetDouble(i), definition(in, at), 1e-9)
          << "at [" << fmt::format("{}", fmt::join(at, ", ")) << "], seed " << seed;
    }
  }
}

struct Window {
  int64_t stride = 1, pad = 0, dilation = 1;
};

bool Inside(int64_t i, int64_t extent) { return i >= 0 && i < extent; }

Definition Conv1d(bool last, int64_t width, int64_t ci, int64_t co, int64_t kernel, Window w,
                  int64_t groups) {
  return [=](const Tensors& in, const Index& at) {
    const int64_t x = last ? at[1] : at[2], f = last ? at[2] : at[1];
    double sum = 0;
    for (int64_t c = 0; c < ci / groups; ++c) {
      for (int64_t k = 0; k < kernel; ++k) {
        const int64_t from = x * w.stride + k * w.dilation - w.pad;
        const int64_t channel = f / (co / groups) * (ci / groups) + c;
        if (!Inside(from, width)) continue;
        sum += last ? in("p0", {at[0], from, channel}) * in("p1", {k, c, f})
                    : in("p0", {at[0], channel, from}) * in("p1", {f, c, k});
      }
    }
    return sum;
  };
}

TEST(Reference, Conv1d) {
  for (bool last : {false, true}) {
    const std::string op = last ? "conv1d_nwc" : "conv1d_ncw";
    Check(op, "2,11,4,3,3,2,1", Conv1d(last, 11, 3, 4, 3, {2, 1, 1}, 1));
    Check(op, "1,9,4,6,3,1,2,2,2", Conv1d(last, 9, 6, 4, 3, {1, 2, 2}, 2));
    Check(op, "1,9,4,6,3,1,2,groups=2", Conv1d(last, 9, 6, 4, 3, {1, 2, 1}, 2), ir::kInt8);
  }
}

Definition Conv2d(bool last, int64_t height, int64_t width, int64_t ci, int64_t co, int64_t kernel,
                  Window w, int64_t groups, bool is_output_first = false) {
  return [=](const Tensors& in, const Index& at) {
    const int64_t y = at[last ? 1 : 2], x = at[last ? 2 : 3], f = at[last ? 3 : 1];
    double sum = 0;
    for (int64_t c = 0; c < ci / groups; ++c) {
      for (int64_t r = 0; r < kernel; ++r) {
        for (int64_t s = 0; s < kernel; ++s) {
          const int64_t h = y * w.stride + r * w.dilation - w.pad;
          const int64_t v = x * w.stride + s * w.dilation - w.pad;
          const int64_t channel = f / (co / groups) * (ci / groups) + c;
          if (!Inside(h, height) || !Inside(v, width)) continue;
          const double weight = is_output_first ? in("p1", {f, r, s, c})
                                : last          ? in("p1", {r, s, c, f})
                                                : in("p1", {f, c, r, s});
          sum +=
              weight * (last ? in("p0", {at[0], h, v, channel}) : in("p0", {at[0], channel, h, v}));
        }
      }
    }
    return sum;
  };
}

TEST(Reference, Conv2d) {
  for (bool last : {false, true}) {
    const std::string op = last ? "conv2d_nhwc" : "conv2d_nchw";
    Check(op, "2,5,7,3,2,3,3,2,1", Conv2d(last, 5, 7, 2, 3, 3, {2, 1, 1}, 1));
    Check(op, "1,5,6,4,6,2,2,1,1,2,2", Conv2d(last, 5, 6, 6, 4, 2, {1, 1, 2}, 2));
  }
  Check("conv2d_nhwc", "1,5,6,4,6,2,2,1,1,2,2,output_first=1",
        Conv2d(true, 5, 6, 6, 4, 2, {1, 1, 2}, 2, true));
}

// The matrix G of Winograd's method, with one row for each point: the weights of a window are G g
// G'.
std::vector<std::array<double, 3>> WeightTransform(int64_t tile) {
  const std::vector<double> points =
      tile == 2 ? std::vector<double>{0, -1, 1} : std::vector<double>{0, -1, 1, 0.5, -2};
  std::vector<std::array<double, 3>> rows;
  for (double point : points) {
    double norm = 1;
    for (double other : points) norm *= other == point ? 1 : point - other;
    // That column of the input's matrix is negated.
    if (tile == 2 && point == 0) norm = 1;
    rows.push_back({1 / norm, point / norm, point * point / norm});
  }
  rows.push_back({0, 0, 1});
  return rows;
}

// Fills transformed weights, [alpha, alpha, CO, CI] or by rows [alpha * alpha, CO / b, CI, b], for
// `g`, which is [3, 3, CI, CO].
void FillTransformed(const NDArray& g, int64_t tile, bool by_rows, NDArray& weights) {
  const std::vector<std::array<double, 3>> rows = WeightTransform(tile);
  const int64_t alpha = tile + 2, ci = g.shape()[2], co = g.shape()[3];
  for (int64_t i = 0; i < weights.num_elements(); ++i) {
    const int64_t t = i / (ci * co), block = by_rows ? weights.shape()[3] : 1;
    const int64_t c = i / block % ci, f = i / (block * ci) * block % co + i % block;
    double sum = 0;
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t s = 0; s < 3; ++s) {
        sum += rows[t / alpha][r] * rows[t % alpha][s] *
               g.GetDouble(g.Flatten(std::array<int64_t, 4>{r, s, c, f}));
      }
    }
    weights.SetDouble(i, sum);
  }
}

TEST(Reference, Conv2dWinograd) {
  const int64_t height = 7, width = 6, ci = 2;
  for (int64_t co : {3, 64}) {
    NDArray g(ir::kFloat64, {3, 3, ci, co});
    g.FillRandom(5);
    for (const auto& [tile, by_rows] :
         {std::pair<int64_t, bool>{2, false}, {2, true}, {4, false}, {4, true}}) {
      const std::string args = fmt::format("2,{},{},{},{},tile={},by_rows={}", height, width, co,
                                           ci, tile, int{by_rows});
      SCOPED_TRACE(args);
      ASSERT_OK_AND_ASSIGN(DagPtr dag,
                           BuildOp("conv2d_winograd_nhwc", args, {.dtype = ir::kFloat64}));
      std::vector<NDArray> inputs = RandomInputs(*dag, 3);
      FillTransformed(g, tile, by_rows, inputs[1]);
      ASSERT_OK_AND_ASSIGN(const auto outputs, Evaluate(*dag, inputs));
      ASSERT_OK_AND_ASSIGN(
          DagPtr direct,
          BuildOp("conv2d_nhwc", fmt::format("2,{},{},{},{},3,3,1,1", height, width, co, ci),
                  {.dtype = ir::kFloat64}));
      const std::vector<NDArray> plain = {inputs[0], g};
      const Tensors in(*direct, plain);
      const Definition definition = Conv2d(true, height, width, ci, co, 3, {1, 1, 1}, 1);
      for (int64_t i = 0; i < outputs[0].num_elements(); ++i) {
        const Index at = outputs[0].Unflatten(i);
        ASSERT_NEAR(outputs[0].GetDouble(i), definition(in, at), 1e-9)
            << "at [" << fmt::format("{}", fmt::join(at, ", ")) << "]";
      }
    }
  }
}

TEST(Reference, Conv2dWinogradWeights) {
  for (int64_t co : {3, 64}) {
    for (int64_t tile : {2, 4}) {
      for (bool by_rows : {false, true}) {
        const std::string args = fmt::format("{},2,{},by_rows={}", co, tile, int{by_rows});
        SCOPED_TRACE(args);
        ASSERT_OK_AND_ASSIGN(DagPtr dag,
                             BuildOp("conv2d_winograd_weights", args, {.dtype = ir::kFloat64}));
        const std::vector<NDArray> inputs = RandomInputs(*dag, 7);
        ASSERT_OK_AND_ASSIGN(const auto outputs, Evaluate(*dag, inputs));
        NDArray want(ir::kFloat64, outputs[0].shape());
        FillTransformed(inputs[0], tile, by_rows, want);
        for (int64_t i = 0; i < want.num_elements(); ++i) {
          ASSERT_NEAR(outputs[0].GetDouble(i), want.GetDouble(i), 1e-12) << i;
        }
      }
    }
  }
}

Definition Conv3d(bool last, std::array<int64_t, 3> size, int64_t ci, int64_t co,
                  std::array<int64_t, 3> kernel, Window w, int64_t groups) {
  return [=](const Tensors& in, const Index& at) {
    const size_t image = last ? 1 : 2;
    const int64_t f = at[last ? 4 : 1];
    double sum = 0;
    for (int64_t c = 0; c < ci / groups; ++c) {
      for (int64_t q = 0; q < kernel[0]; ++q) {
        for (int64_t r = 0; r < kernel[1]; ++r) {
          for (int64_t s = 0; s < kernel[2]; ++s) {
            const int64_t z = at[image] * w.stride + q * w.dilation - w.pad;
            const int64_t y = at[image + 1] * w.stride + r * w.dilation - w.pad;
            const int64_t x = at[image + 2] * w.stride + s * w.dilation - w.pad;
            const int64_t channel = f / (co / groups) * (ci / groups) + c;
            if (!Inside(z, size[0]) || !Inside(y, size[1]) || !Inside(x, size[2])) continue;
            sum += last ? in("p0", {at[0], z, y, x, channel}) * in("p1", {q, r, s, c, f})
                        : in("p0", {at[0], channel, z, y, x}) * in("p1", {f, c, q, r, s});
          }
        }
      }
    }
    return sum;
  };
}

TEST(Reference, Conv3d) {
  for (bool last : {false, true}) {
    const std::string op = last ? "conv3d_ndhwc" : "conv3d_ncdhw";
    Check(op, "1,4,5,3,2,3,2,3,1,2,1", Conv3d(last, {4, 5, 3}, 3, 2, {2, 3, 1}, {2, 1, 1}, 1));
    Check(op, "1,3,4,3,4,2,2,2,2,1,1,1,2", Conv3d(last, {3, 4, 3}, 2, 4, {2, 2, 2}, {1, 1, 1}, 2));
  }
}

// Every input element is spread over a window of the output.
Definition ConvTranspose(bool last, int64_t height, int64_t width, int64_t ci,
                         std::array<int64_t, 2> kernel, int64_t stride, int64_t pad) {
  return [=](const Tensors& in, const Index& at) {
    const int64_t y = at[last ? 1 : 2], x = at[last ? 2 : 3], f = at[last ? 3 : 1];
    double sum = 0;
    for (int64_t c = 0; c < ci; ++c) {
      for (int64_t h = 0; h < height; ++h) {
        for (int64_t v = 0; v < width; ++v) {
          const int64_t r = y - (h * stride - pad), s = x - (v * stride - pad);
          if (!Inside(r, kernel[0]) || !Inside(s, kernel[1])) continue;
          sum += last ? in("p0", {at[0], h, v, c}) * in("p1", {r, s, c, f})
                      : in("p0", {at[0], c, h, v}) * in("p1", {c, f, r, s});
        }
      }
    }
    return sum;
  };
}

TEST(Reference, Conv2dTranspose) {
  for (bool last : {false, true}) {
    const std::string op = last ? "conv2d_transpose_nhwc" : "conv2d_transpose_nchw";
    Check(op, "1,4,3,3,2,4,3,2,1", ConvTranspose(last, 4, 3, 2, {4, 3}, 2, 1));
    Check(op, "2,3,5,2,3,3,3,1,1", ConvTranspose(last, 3, 5, 3, {3, 3}, 1, 1));
    Check(op, "1,3,3,2,1,2,4,3,0", ConvTranspose(last, 3, 3, 1, {2, 4}, 3, 0));
    Check(op, "1,3,4,2,3,3,3,2,1,output_pad=1", ConvTranspose(last, 3, 4, 3, {3, 3}, 2, 1));
    Check(op, "1,3,4,2,3,3,3,2,1,output_pad=1,dilate=1",
          ConvTranspose(last, 3, 4, 3, {3, 3}, 2, 1));
    Check(op, "1,3,4,2,3,5,4,3,3,output_pad=2", ConvTranspose(last, 3, 4, 3, {5, 4}, 3, 3));
    Check(op, "1,3,4,2,3,6,6,2,4", ConvTranspose(last, 3, 4, 3, {6, 6}, 2, 4));
  }
}

TEST(Reference, Conv2dTransposeHasTheSizeThatOthersGiveIt) {
  // The extents are (H - 1) * stride - 2 * pad + kernel + output_pad.
  ASSERT_OK_AND_ASSIGN(DagPtr dag, BuildOp("conv2d_transpose", "1,4,7,2,2,3,5,2,1,1"));
  EXPECT_EQ(dag->shape(dag->arguments().back()), (Index{1, 2, 8, 16}));
}

Definition AdaptivePool2d(bool last, bool max, int64_t height, int64_t width, int64_t oh,
                          int64_t ow) {
  return [=](const Tensors& in, const Index& at) {
    const int64_t y = at[last ? 1 : 2], x = at[last ? 2 : 3], c = at[last ? 3 : 1];
    auto begin = [](int64_t o, int64_t extent, int64_t count) {
      return static_cast<int64_t>(std::floor(double(o * extent) / double(count)));
    };
    auto end = [](int64_t o, int64_t extent, int64_t count) {
      return static_cast<int64_t>(std::ceil(double((o + 1) * extent) / double(count)));
    };
    double sum = 0, largest = -INFINITY;
    int64_t elements = 0;
    for (int64_t h = begin(y, height, oh); h < end(y, height, oh); ++h) {
      for (int64_t w = begin(x, width, ow); w < end(x, width, ow); ++w) {
        const double value = last ? in("p0", {at[0], h, w, c}) : in("p0", {at[0], c, h, w});
        sum += value;
        largest = std::max(largest, value);
        ++elements;
      }
    }
    return max ? largest : sum / static_cast<double>(elements);
  };
}

TEST(Reference, AdaptivePool2d) {
  for (bool last : {false, true}) {
    for (bool max : {false, true}) {
      const std::string op =
          fmt::format("adaptive_{}_pool2d_{}", max ? "max" : "avg", last ? "nhwc" : "nchw");
      for (const auto& [h, w, oh, ow] :
           {std::array<int64_t, 4>{7, 5, 3, 2}, {6, 4, 3, 2}, {3, 8, 5, 3}, {5, 5, 1, 5}}) {
        Check(op, fmt::format("1,{},{},3,{},{}", h, w, oh, ow),
              AdaptivePool2d(last, max, h, w, oh, ow));
      }
    }
  }
}

// Tests every pair of extents, for windows of unequal lengths.
TEST(Reference, AdaptivePool1d) {
  for (bool max : {false, true}) {
    for (int64_t width = 1; width <= 9; ++width) {
      for (int64_t out = 1; out <= 7; ++out) {
        Check(max ? "adaptive_max_pool1d_ncw" : "adaptive_avg_pool1d_ncw",
              fmt::format("1,{},1,{}", width, out), [&](const Tensors& in, const Index& at) {
                // The one channel of the one batch is read flat.
                const int64_t begin = at[2] * width / out;
                const int64_t end = ((at[2] + 1) * width + out - 1) / out;
                double sum = 0, largest = -INFINITY;
                for (int64_t i = begin; i < end; ++i) {
                  sum += in.Flat("p0", i);
                  largest = std::max(largest, in.Flat("p0", i));
                }
                return max ? largest : sum / static_cast<double>(end - begin);
              });
      }
    }
    Check(max ? "adaptive_max_pool1d_nwc" : "adaptive_avg_pool1d_nwc", "2,6,3,3",
          [&](const Tensors& in, const Index& at) {
            const double a = in("p0", {at[0], 2 * at[1], at[2]});
            const double b = in("p0", {at[0], 2 * at[1] + 1, at[2]});
            return max ? std::max(a, b) : (a + b) / 2;
          });
  }
}

TEST(Reference, LayerNorm) {
  for (const auto& [eps, one_pass] : {std::pair{5, 0}, {1, 0}, {5, 1}}) {
    Check("layer_norm", fmt::format("3,2,5,axis=1,eps={},one_pass={}", eps, one_pass),
          [eps = eps](const Tensors& in, const Index& at) {
            double mean = 0, variance = 0;
            for (int64_t i = 0; i < 10; ++i) mean += in("p0", {at[0], i / 5, i % 5}) / 10;
            for (int64_t i = 0; i < 10; ++i)
              variance += std::pow(in("p0", {at[0], i / 5, i % 5}) - mean, 2) / 10;
            const double scale = 1 / std::sqrt(variance + std::pow(10, -eps));
            return (in("p0", at) - mean) * scale * in("p1", {at[1], at[2]}) +
                   in("p2", {at[1], at[2]});
          });
  }
}

TEST(Reference, RmsNorm) {
  Check("rms_norm", "4,7", [](const Tensors& in, const Index& at) {
    double squares = 0;
    for (int64_t i = 0; i < 7; ++i) squares += std::pow(in("p0", {at[0], i}), 2) / 7;
    return in("p0", at) / std::sqrt(squares + 1e-5) * in("p1", {at[1]});
  });
}

TEST(Reference, BatchNorm) {
  Check("batch_norm", "2,3,4,5", [](const Tensors& in, const Index& at) {
    const Index c = {at[1]};
    const double scale = in("p3", c) / std::sqrt(std::max(in("p2", c), 0.0) + 1e-5);
    return (in("p0", at) - in("p1", c)) * scale + in("p4", c);
  });
}

TEST(Reference, Reshape) {
  Check("reshape", "3,4,5,to=6,to=-1",
        [](const Tensors& in, const Index& at) { return in.Flat("p0", at[0] * 10 + at[1]); });
  Check("reshape", "24,to=2,to=3,to=4", [](const Tensors& in, const Index& at) {
    return in.Flat("p0", (at[0] * 3 + at[1]) * 4 + at[2]);
  });
  Check("reshape", "1,3,1,to=3",
        [](const Tensors& in, const Index& at) { return in.Flat("p0", at[0]); });
}

TEST(Reference, Transpose) {
  Check("transpose", "3,5,2,axis=1,axis=-1,axis=0",
        [](const Tensors& in, const Index& at) { return in("p0", {at[2], at[0], at[1]}); });
  Check("transpose", "3,5,2",
        [](const Tensors& in, const Index& at) { return in("p0", {at[2], at[1], at[0]}); });
}

TEST(Reference, Concat) {
  Check("concat", "3,2,with=5,with=1", [](const Tensors& in, const Index& at) {
    if (at[1] < 2) return in("p0", at);
    return at[1] < 7 ? in("p1", {at[0], at[1] - 2}) : in("p2", {at[0], 0});
  });
  Check("concat", "3,2,axis=0,with=4", [](const Tensors& in, const Index& at) {
    return at[0] < 3 ? in("p0", at) : in("p1", {at[0] - 3, at[1]});
  });
}

TEST(Reference, ConcatAsksForItsInputsInOrder) {
  ASSERT_OK_AND_ASSIGN(DagPtr dag, BuildOp("concat", "3,with=1,with=2"));
  EXPECT_EQ(dag->op(0).shape(), Index{3});
  EXPECT_EQ(dag->op(1).shape(), Index{1});
  EXPECT_EQ(dag->op(2).shape(), Index{2});
}

TEST(Reference, Slice) {
  Check(
      "slice", "7,9,begin=1,begin=-7,end=-1,stride=2,stride=3",
      [](const Tensors& in, const Index& at) { return in("p0", {1 + 2 * at[0], 2 + 3 * at[1]}); });
  ASSERT_OK_AND_ASSIGN(DagPtr dag,
                       BuildOp("slice", "7,9,begin=1,begin=-7,end=-1,stride=2,stride=3"));
  // The values are 1 3 5 and 2 5 8.
  EXPECT_EQ(dag->op(1).shape(), (Index{3, 3}));
}

TEST(Reference, Gather) {
  Check("gather", "11,3,indices=5", [](const Tensors& in, const Index& at) {
    return in("p0", {static_cast<int64_t>(in("p1", {at[0]})), at[1]});
  });
  Check("gather", "3,7,2,axis=1,indices=2,indices=4", [](const Tensors& in, const Index& at) {
    return in("p0", {at[0], static_cast<int64_t>(in("p1", {at[1], at[2]})), at[3]});
  });
}

TEST(Reference, GatherClipsItsIndices) {
  ASSERT_OK_AND_ASSIGN(DagPtr dag, BuildOp("gather", "3,indices=4"));
  std::vector<NDArray> inputs = RandomInputs(*dag, 1);
  const size_t ids = inputs[0].type() == ir::kInt32 ? 0 : 1;
  inputs[ids] = NDArray(ir::kInt32, {4}, std::vector<double>{-5, 0, 2, 1e6});
  inputs[1 - ids] = NDArray(ir::kFloat32, {3}, std::vector<double>{10, 20, 30});
  ASSERT_OK_AND_ASSIGN(const auto outputs, Evaluate(*dag, inputs));
  EXPECT_EQ(outputs[0], NDArray(ir::kFloat32, {4}, std::vector<double>{10, 10, 30, 30}));
}

// Returns the position of output element o in the input.
double Source(int coordinates, int64_t o, int64_t in, int64_t out) {
  const auto place = static_cast<double>(o), from = static_cast<double>(in),
             to = static_cast<double>(out);
  if (coordinates == 0) return (place + 0.5) * from / to - 0.5;
  if (coordinates == 1) return out == 1 ? 0 : place * (from - 1) / (to - 1);
  return place * from / to;
}

TEST(Reference, Resize) {
  constexpr int64_t kSizes[][4] = {
      {3, 4, 7, 5}, {5, 6, 2, 3}, {4, 4, 8, 8}, {1, 3, 4, 1}, {6, 2, 6, 4}};
  for (const auto& [h, w, oh, ow] : kSizes) {
    for (int coordinates : {0, 1, 2}) {
      for (bool last : {false, true}) {
        auto element = [=, h = h, w = w](const Tensors& in, const Index& at, int64_t y, int64_t x) {
          y = std::clamp<int64_t>(y, 0, h - 1);
          x = std::clamp<int64_t>(x, 0, w - 1);
          return last ? in("p0", {at[0], y, x, at[3]}) : in("p0", {at[0], at[1], y, x});
        };
        auto sources = [=, h = h, w = w, oh = oh, ow = ow](const Index& at) {
          return std::pair(Source(coordinates, at[last ? 1 : 2], h, oh),
                           Source(coordinates, at[last ? 2 : 3], w, ow));
        };
        const std::string layout = last ? "nhwc" : "nchw";
        const std::string args =
            fmt::format("1,{},{},2,{},{},coordinates={}", h, w, oh, ow, coordinates);
        Check("resize_nearest_" + layout, args, [&](const Tensors& in, const Index& at) {
          const auto [y, x] = sources(at);
          // The number is a little more than 0.5, against rounding.
          const double half = coordinates == 2 ? 0 : 0.5;
          return element(in, at, static_cast<int64_t>(std::floor(y + half + 1e-9)),
                         static_cast<int64_t>(std::floor(x + half + 1e-9)));
        });
        Check("resize_bilinear_" + layout, args, [&](const Tensors& in, const Index& at) {
          const auto [y, x] = sources(at);
          const auto top = static_cast<int64_t>(std::floor(y)),
                     left = static_cast<int64_t>(std::floor(x));
          const double down = y - std::floor(y), right = x - std::floor(x);
          return (1 - down) * ((1 - right) * element(in, at, top, left) +
                               right * element(in, at, top, left + 1)) +
                 down * ((1 - right) * element(in, at, top + 1, left) +
                         right * element(in, at, top + 1, left + 1));
        });
      }
    }
  }
}

TEST(Reference, Argmin) {
  Check("argmin", "3,5,4,axis=0,axis=2", [](const Tensors& in, const Index& at) {
    int64_t best = 0;
    for (int64_t i = 0; i < 12; ++i) {
      if (in("p0", {i / 4, at[0], i % 4}) < in("p0", {best / 4, at[0], best % 4})) best = i;
    }
    return static_cast<double>(best);
  });
}

TEST(Reference, ElementwiseFunctions) {
  auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  auto softplus = [](double x) { return std::log1p(std::exp(x)); };
  auto expm1 = [](double x) { return std::exp(x) - 1; };
  const std::map<std::string, std::function<double(double)>> functions = {
      {"relu", [](double x) { return x > 0 ? x : 0; }},
      {"relu6", [](double x) { return std::clamp(x, 0.0, 6.0); }},
      {"leaky_relu", [](double x) { return x > 0 ? x : 0.1 * x; }},
      {"elu", [&](double x) { return x > 0 ? x : expm1(x); }},
      {"sigmoid", sigmoid},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"gelu", [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
      {"gelu_tanh",
       [](double x) {
         return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
       }},
      {"silu", [&](double x) { return x * sigmoid(x); }},
      {"swish", [&](double x) { return x * sigmoid(x); }},
      {"hard_sigmoid", [](double x) { return std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {"hard_swish", [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {"softplus", softplus},
      {"mish", [&](double x) { return x * std::tanh(softplus(x)); }},
      {"selu",
       [&](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * expm1(x)); }},
      {"softsign", [](double x) { return x / (1 + std::fabs(x)); }},
      {"log_sigmoid", [&](double x) { return std::log(sigmoid(x)); }},
      {"exp", [](double x) { return std::exp(x); }},
      {"erf", [](double x) { return std::erf(x); }},
      {"sin", [](double x) { return std::sin(x); }},
      {"cos", [](double x) { return std::cos(x); }},
      {"floor", [](double x) { return std::floor(x); }},
      {"ceil", [](double x) { return std::ceil(x); }},
      {"round", [](double x) { return std::nearbyint(x); }},
      {"sign", [](double x) { return x > 0   ? 1.0
                                     : x < 0 ? -1.0
                                             : 0.0; }},
      {"abs", [](double x) { return std::fabs(x); }},
      {"square", [](double x) { return x * x; }},
      {"negative", [](double x) { return -x; }},
      {"reciprocal", [](double x) { return 1 / x; }},
      {"log", [](double x) { return std::log(x); }},
      {"sqrt", [](double x) { return std::sqrt(x); }},
      {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
  };
  const std::vector<double> points = {-7.5, -3, -2.5, -1, -0.3, 0.2, 0.5, 1, 2.5, 3.7, 6, 9};
  const NDArray input(ir::kFloat64, {static_cast<int64_t>(points.size())}, points);
  for (const std::string& name : UnaryNames()) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(functions.contains(name));
    ASSERT_OK_AND_ASSIGN(DagPtr dag,
                         BuildOp(name, fmt::format("{}", points.size()), {.dtype = ir::kFloat64}));
    ASSERT_OK_AND_ASSIGN(const auto outputs, Evaluate(*dag, std::span(&input, 1)));
    for (size_t i = 0; i < points.size(); ++i) {
      const double want = functions.at(name)(points[i]);
      const double got = outputs[0].GetDouble(static_cast<int64_t>(i));
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : std::fabs(got - want) < 1e-9)
          << "at " << points[i] << ": " << got << ", expected " << want;
    }
  }
}

TEST(Reference, Prelu) {
  Check("prelu", "2,3,4,axis=1", [](const Tensors& in, const Index& at) {
    const double x = in("p0", at);
    return x > 0 ? x : x * in("p1", {at[1]});
  });
}

TEST(Reference, BatchMatmulTransposed) {
  for (int ta : {0, 1}) {
    for (int tb : {0, 1}) {
      Check("batch_matmul", fmt::format("2,3,4,5,{},{}", ta, tb),
            [=](const Tensors& in, const Index& at) {
              double sum = 0;
              for (int64_t k = 0; k < 5; ++k) {
                sum += in("p0", ta ? Index{at[0], k, at[1]} : Index{at[0], at[1], k}) *
                       in("p1", tb ? Index{at[0], at[2], k} : Index{at[0], k, at[2]});
              }
              return sum;
            });
    }
  }
}

TEST(Reference, Attention) {
  for (const bool causal : {false, true}) {
    for (const bool mask : {false, true}) {
      Check("attention", fmt::format("2,4,3,causal={:d},keys=5,values=2,mask={:d}", causal, mask),
            [=](const Tensors& in, const Index& at) {
              double sum = 0, result = 0;
              for (int64_t n = 0; n < 5; ++n) {
                if (causal && n > at[1]) continue;
                double score = 0;
                for (int64_t k = 0; k < 3; ++k)
                  score += in("p0", {at[0], at[1], k}) * in("p1", {at[0], n, k});
                score = score / std::sqrt(3) + (mask ? in("p2", {at[1], n}) : 0);
                sum += std::exp(score);
                result += std::exp(score) * in(mask ? "p3" : "p2", {at[0], n, at[2]});
              }
              return result / sum;
            });
    }
  }
}

}  // namespace
}  // namespace kiln::dag
