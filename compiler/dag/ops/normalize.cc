// Layer, root-mean-square and batch normalization at inference.
#include "compiler/dag/ops/normalize.h"

#include <cmath>

namespace kiln::dag {
namespace {

// The axes from `axis` on are normalized together. The others are independent rows.
struct Rows {
  std::vector<int64_t> outer, inner;
  std::vector<Axis> reduce;
  // Elements of a row.
  double size = 1;

  Vars Outer(Vars v) const { return v.first(outer.size()); }
  Vars Inner(Vars v) const { return v.subspan(outer.size()); }
};

Rows RowsOf(const std::vector<int64_t>& shape, size_t axis) {
  Rows rows;
  for (size_t i = 0; i < shape.size(); ++i) {
    (i < axis ? rows.outer : rows.inner).push_back(shape[i]);
    if (i < axis) continue;
    rows.reduce.push_back({fmt::format("k{}", i), shape[i]});
    rows.size *= static_cast<double>(shape[i]);
  }
  return rows;
}

// Reads the axis and epsilon, which is 10 to the power of -eps.
NormSpec ReadSpec(OpContext& c) {
  return {c.AxisAt("axis", c.args["axis"]).value_or(0),
          std::pow(10.0, -static_cast<double>(c.args["eps"]))};
}

// Returns y * gamma + beta. A missing factor or addend is left out.
Value Scaled(OpContext& c, const Value& y, const TensorRef* gamma, const TensorRef* beta,
             const Rows& rows, Vars v) {
  const auto at = [&](const TensorRef& x) {
    return c.Widen(BroadcastAt(x, rows.inner, rows.Inner(v)));
  };
  const Value scaled = gamma == nullptr ? y : y * at(*gamma);
  return beta == nullptr ? scaled : scaled + at(*beta);
}

// Computes the same as topi's layer_norm: the variance is the mean of the squares less the square
// of the mean, so that both sums are one operator, which reads the input once.
TensorRef LayerNormOfOnePass(OpContext& c) {
  const NormSpec spec = ReadSpec(c);
  const Rows rows = RowsOf(c.args.shape(), spec.axis);
  TensorRef x = c.Input(c.args.shape());
  TensorRef sum = c.b.Tuple(x.name() + "_red_temp", NumberedAxes("ax", rows.outer), rows.reduce,
                            Combiner::kSum, [&](Vars v) {
                              const Value value = c.Widen(x.At(v));
                              return std::vector<Value>{value, value * value};
                            });
  TensorRef squares = sum.output(1);
  TensorRef gamma = c.Input(rows.inner), beta = c.Input(rows.inner);
  return c.b.Compute("T_layer_norm", NumberedAxes("ax", c.args.shape()), [&](Vars v) {
    const Value mean = sum.At(rows.Outer(v)) / rows.size;
    const Value variance = squares.At(rows.Outer(v)) / rows.size - mean * mean;
    return Scaled(c, (c.Widen(x.At(v)) - mean) * Rsqrt(variance + spec.epsilon), &gamma, &beta,
                  rows, v);
  });
}

}  // namespace

TensorRef WriteLayerNorm(OpContext& c, const NormSpec& spec, const TensorRef& x,
                         const TensorRef* gamma, const TensorRef* beta) {
  const Rows rows = RowsOf(x.shape(), spec.axis);
  const std::vector<Axis> outer = NumberedAxes("ax", rows.outer);
  TensorRef sum = c.b.Reduce("T_layer_norm_sum", outer, rows.reduce, Combiner::kSum,
                             [&](Vars v) { return c.Widen(x.At(v)); });
  TensorRef mean = c.b.Compute("T_layer_norm_mean", outer,
                               [&](Vars v) { return sum.At(v) * (1.0 / rows.size); });
  TensorRef squares =
      c.b.Reduce("T_layer_norm_squares", outer, rows.reduce, Combiner::kSum, [&](Vars v) {
        const Value distance = c.Widen(x.At(v)) - mean.At(rows.Outer(v));
        return distance * distance;
      });
  return c.b.Compute("T_layer_norm", NumberedAxes("ax", x.shape()), [&](Vars v) {
    const Value scale = Rsqrt(squares.At(rows.Outer(v)) * (1.0 / rows.size) + spec.epsilon);
    return Scaled(c, (c.Widen(x.At(v)) - mean.At(rows.Outer(v))) * scale, gamma, beta, rows, v);
  });
}

TensorRef WriteRmsNorm(OpContext& c, const NormSpec& spec, const TensorRef& x,
                       const TensorRef* gamma) {
  const Rows rows = RowsOf(x.shape(), spec.axis);
  TensorRef squares =
      c.b.Reduce("T_rms_norm_squares", NumberedAxes("ax", rows.outer), rows.reduce, Combiner::kSum,
                 [&](Vars v) { return c.Widen(x.At(v)) * c.Widen(x.At(v)); });
  return c.b.Compute("T_rms_norm", NumberedAxes("ax", x.shape()), [&](Vars v) {
    const Value scale = Rsqrt(squares.At(rows.Outer(v)) * (1.0 / rows.size) + spec.epsilon);
    return Scaled(c, c.Widen(x.At(v)) * scale, gamma, nullptr, rows, v);
  });
}

// A variance is not negative. The clamp makes the function total, so that a test with any numbers
// is meaningful.
TensorRef WriteBatchNorm(OpContext& c, const NormSpec& spec, const TensorRef& x,
                         const BatchNormVectors& vectors) {
  return c.b.Compute("T_batch_norm", NumberedAxes("ax", x.shape()), [&](Vars v) {
    const auto at = [&](const TensorRef& vector) { return c.Widen(vector(v[spec.axis])); };
    return Cast(c.type, (c.Widen(x.At(v)) - at(vectors.mean)) *
                                Rsqrt(Max(at(vectors.variance), 0.0) + spec.epsilon) *
                                at(vectors.gamma) +
                            at(vectors.beta));
  });
}

namespace {

TensorRef LayerNorm(OpContext& c) {
  c.RequireFloat();
  if (c.args["one_pass"] != 0) return LayerNormOfOnePass(c);
  const NormSpec spec = ReadSpec(c);
  TensorRef x = c.Input(c.args.shape());
  const std::vector<int64_t> inner = RowsOf(x.shape(), spec.axis).inner;
  TensorRef gamma = c.Input(inner), beta = c.Input(inner);
  return WriteLayerNorm(c, spec, x, &gamma, &beta);
}

TensorRef RmsNorm(OpContext& c) {
  c.RequireFloat();
  const NormSpec spec = ReadSpec(c);
  TensorRef x = c.Input(c.args.shape());
  TensorRef gamma = c.Input(RowsOf(x.shape(), spec.axis).inner);
  return WriteRmsNorm(c, spec, x, &gamma);
}

// Uses the mean and variance of training.
TensorRef BatchNorm(OpContext& c) {
  c.RequireFloat();
  const NormSpec spec = ReadSpec(c);
  TensorRef x = c.Input(c.args.shape());
  const std::vector<int64_t> channels = {x.shape()[spec.axis]};
  TensorRef mean = c.Input(channels), variance = c.Input(channels), gamma = c.Input(channels),
            beta = c.Input(channels);
  return WriteBatchNorm(c, spec, x, {mean, variance, gamma, beta});
}

Parameter Eps() {
  return {.name = "eps",
          .doc = "10 to the -eps is added to the variance",
          .min = 1,
          .max = 12,
          .default_value = 5};
}

OpInfo Info(std::string name, std::string doc, std::string axis_doc, int64_t axis,
            TensorRef (*build)(OpContext&)) {
  return {
      .name = std::move(name),
      .family = "normalizations",
      .doc = std::move(doc),
      .takes_shape = true,
      .parameters =
          {{.name = "axis", .doc = std::move(axis_doc), .min = -8, .max = 7, .default_value = axis},
           Eps()},
      .build = build};
}

}  // namespace

std::vector<OpInfo> NormalizeOps() {
  const std::string rows = "first normalized axis, all after it are too; negative: from the end";
  OpInfo batch = Info("batch_norm",
                      "(x - mean) / sqrt(variance) gamma + beta with given vectors along one axis",
                      "axis of the channels; negative: from the end", 1, BatchNorm);
  batch.min_rank = 2;
  OpInfo layer = Info("layer_norm", "(x - mean) / sqrt(variance) gamma + beta over the last axes",
                      rows, -1, LayerNorm);
  layer.parameters.push_back({.name = "one_pass",
                              .doc = "1: the sums of x and of its squares in one operator, less "
                                     "exact where the mean is large",
                              .min = 0,
                              .max = 1,
                              .default_value = 0});
  return {layer,
          Info("rms_norm", "x / sqrt(mean of squares) gamma over the last axes", rows, -1, RmsNorm),
          batch};
}

}  // namespace kiln::dag
