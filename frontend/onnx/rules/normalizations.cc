// Normalizations over channels, layers, groups and neighbours.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/numbers/integers.h"
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

// Mean and variance (biased) over axes, which stay with an extent of 1.
struct Moments {
  Tensor mean, variance;
};
Moments MomentsOf(NodeContext& n, const Tensor& x, const Shape& axes) {
  const Tensor mean = n.Reduce("reduce_mean", x, axes, true);
  const Tensor squares = n.Emit("square", {n.Sub(x, mean)});
  return {mean, n.Reduce("reduce_mean", squares, axes, true)};
}

// Normalizes with the statistics of this batch, and moves the running statistics towards them.
void TrainedBatchNormalization(NodeContext& n, double epsilon) {
  const Tensor& x = n.input(0);
  Shape axes;
  for (int64_t d = 0; d < x.rank(); ++d)
    if (d != 1) axes.push_back(d);
  const Moments moments = MomentsOf(n, x, axes);
  if (n.failed()) return;
  const Tensor mean = n.Reshape(moments.mean, n.input(3).shape());
  const Tensor variance = n.Reshape(moments.variance, n.input(4).shape());
  n.SetOutput(n.Emit("batch_norm", {x, n.input(1), n.input(2), mean, variance},
                     {{"axis", int64_t{1}}, {"epsilon", epsilon}}));
  const double momentum = n.Float("momentum", 0.9);
  const auto moved = [&](const Tensor& running, const Tensor& batch) {
    return n.Add(n.Mul(running, n.ScalarLike(running, momentum)),
                 n.Mul(batch, n.ScalarLike(batch, 1 - momentum)));
  };
  if (n.wants_output(1)) n.SetOutput(1, moved(n.input(3), mean));
  if (n.wants_output(2)) n.SetOutput(2, moved(n.input(4), variance));
}

// Version 14 has an attribute for it. Before it, a node that names further outputs trains, even if
// nobody reads them, and versions below 7 have an attribute that forbids it.
bool Trains(NodeContext& n) {
  if (n.version() >= 14) return n.Int("training_mode", 0) != 0;
  if (n.version() < 7 && n.Int("is_test", 0) != 0) return false;
  return n.num_named_outputs() > 1;
}

void BatchNormalization(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 1);
  for (int i = 1; i < 5; ++i) n.RequireRank(i, 1, 1);
  if (n.failed()) return;
  if (n.version() < 9 && n.Int("spatial", 1) == 0)
    return n.Unsupported("statistics of each element (spatial = 0)");
  const double epsilon = n.Float("epsilon", 1e-5);
  if (Trains(n)) return TrainedBatchNormalization(n, epsilon);
  const Tensor& x = n.input(0);
  std::vector<Tensor> inputs = {x};
  for (int i = 1; i < 5; ++i) inputs.push_back(n.Cast(n.input(i), x.element()));
  // An input of one dimension is a batch of single channels.
  if (x.rank() == 1) inputs[0] = n.Reshape(x, {x.dim(0), 1});
  const Tensor y = n.Emit("batch_norm", inputs, {{"axis", int64_t{1}}, {"epsilon", epsilon}});
  n.SetOutput(n.Reshape(y, x.shape()));
}

void InstanceNormalization(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 3);
  n.SetOutput(n.Emit("instance_norm", {n.input(0), n.input(1), n.input(2)},
                     {{"epsilon", n.Float("epsilon", 1e-5)}}));
}

// Up to version 20 scale and bias are per group, later per channel.
void GroupNormalization(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 2);
  n.RequireRank(1, 1, 1);
  n.RequireRank(2, 1, 1);
  const int64_t groups = n.Count("num_groups", 1, 1);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const int64_t channels = x.dim(1);
  const auto of_channels = [&](const Tensor& values) {
    if (n.version() >= 21 || values.dim(0) == channels) return values;
    const Tensor column = n.Reshape(values, {values.dim(0), 1});
    return n.Reshape(n.BroadcastTo(column, {values.dim(0), channels / groups}), {channels});
  };
  if (channels % groups != 0) return n.Invalid("{} channels in {} groups", channels, groups);
  n.SetOutput(n.Emit("group_norm", {x, of_channels(n.input(1)), of_channels(n.input(2))},
                     {{"groups", groups}, {"epsilon", n.Float("epsilon", 1e-5)}}));
}

// Sets the statistics that a layer normalization also returns, in float32.
void LayerStatistics(NodeContext& n, const Tensor& x, int64_t axis, double epsilon) {
  if (!n.wants_output(1) && !n.wants_output(2)) return;
  Shape axes(static_cast<size_t>(x.rank() - axis));
  std::iota(axes.begin(), axes.end(), axis);
  const ir::Type type = x.element() == ir::kFloat64 ? ir::kFloat64 : ir::kFloat32;
  const Moments moments = MomentsOf(n, n.Cast(x, type), axes);
  const Tensor shifted = n.Add(moments.variance, n.Scalar(type, epsilon));
  n.SetOutput(1, n.Cast(moments.mean, ir::kFloat32));
  n.SetOutput(2, n.Cast(n.Emit("rsqrt", {shifted}), ir::kFloat32));
}

void LayerNormalization(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 1);
  n.RequireRank(1, 0);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const int64_t axis = n.Axis(n.Int("axis", -1), x.rank());
  const double epsilon = n.Float("epsilon", 1e-5);
  std::vector<Tensor> inputs = {x, n.Cast(n.input(1), x.element())};
  if (n.has_input(2)) inputs.push_back(n.Cast(n.input(2), x.element()));
  n.SetOutput(n.Emit("layer_norm", inputs, {{"axis", axis}, {"epsilon", epsilon}}));
  if (!n.failed()) LayerStatistics(n, x, axis, epsilon);
}

void RmsNormalization(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 1);
  n.RequireRank(1, 0);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const int64_t axis = n.Axis(n.Int("axis", -1), x.rank());
  n.SetOutput(n.Emit("rms_norm", {x, n.Cast(n.input(1), x.element())},
                     {{"axis", axis}, {"epsilon", n.Float("epsilon", 1e-5)}}));
}

void LocalResponse(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 2);
  n.SetOutput(n.Emit("lrn", {n.input(0)},
                     {{"size", n.Count("size", 1, 1)},
                      {"alpha", n.Float("alpha", 1e-4)},
                      {"beta", n.Float("beta", 0.75)},
                      {"bias", n.Float("bias", 1)},
                      {"axis", int64_t{1}}}));
}

// The standard deviation is increased by 1e-9, as in ONNX's definition.
void MeanVariance(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 1);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const Shape axes = n.Axes(n.Ints("axes", {0, 2, 3}), x.rank());
  const Moments moments = MomentsOf(n, x, axes);
  const Tensor deviation = n.Emit("sqrt", {moments.variance});
  n.SetOutput(n.Div(n.Sub(x, moments.mean), n.Add(deviation, n.ScalarLike(x, 1e-9))));
}

void LpNormalization(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 1);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const Shape axes = {n.Axis(n.Int("axis", -1), x.rank())};
  const int64_t p = n.Int("p", 2);
  if (p != 1 && p != 2) return n.Invalid("p is {}, expected 1 or 2", p);
  const Tensor sum = n.Reduce("reduce_sum", n.Emit(p == 1 ? "abs" : "square", {x}), axes, true);
  const Tensor norm = p == 1 ? sum : n.Emit("sqrt", {sum});
  // Zeros stay zeros.
  const Tensor zero = n.ScalarLike(x, 0);
  n.SetOutput(n.Where(n.Emit("equal", {norm, zero}), zero, n.Div(x, norm)));
}

}  // namespace

std::vector<Rule> NormalizationRules() {
  return {
      {"BatchNormalization", BatchNormalization},  {"InstanceNormalization", InstanceNormalization},
      {"GroupNormalization", GroupNormalization},  {"LayerNormalization", LayerNormalization},
      {"RMSNormalization", RmsNormalization},      {"LRN", LocalResponse},
      {"MeanVarianceNormalization", MeanVariance}, {"LpNormalization", LpNormalization}};
}

}  // namespace kiln::frontend
