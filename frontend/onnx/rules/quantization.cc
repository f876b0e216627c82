// Integers that stand for floats: (q - zero point) scale. Floats in between are rounded by ONNX's
// rules, so that a quantized network gives the same integers as elsewhere.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>

#include "base/numbers/integers.h"
#include "compiler/ir/scalar.h"
#include "frontend/onnx/element_type.h"
#include "frontend/onnx/rule.h"
#include "frontend/onnx/rules/quantized.h"

namespace kiln::frontend {
namespace {

// Returns a scale or a zero point in the shape that broadcasts over x. There is one for all, one
// for each element of an axis, or one for each block of an axis.
Tensor Spread(NodeContext& n, const Tensor& values, const Tensor& x) {
  if (n.failed() || values.num_elements() == 1) return n.Reshape(values, {});
  const int64_t axis = n.Axis(n.Int("axis", 1), x.rank());
  const int64_t block = n.Count("block_size", 0);
  if (n.failed()) return values;
  if (values.rank() == 1 && block == 0) {
    Shape shape(x.shape().size(), 1);
    shape[static_cast<size_t>(axis)] = values.dim(0);
    return n.Reshape(values, std::move(shape));
  }
  if (block == 0 || values.rank() != x.rank() || values.dim(axis) != CeilDiv(x.dim(axis), block)) {
    n.Invalid("scales of {} for {}", TypeText(values.type), TypeText(x.type));
    return values;
  }
  Shape split = values.shape(), spread, merged = values.shape();
  split.insert(split.begin() + axis + 1, 1);
  spread = split;
  spread[static_cast<size_t>(axis) + 1] = block;
  merged[static_cast<size_t>(axis)] *= block;
  const Tensor whole = n.Reshape(n.BroadcastTo(n.Reshape(values, split), spread), merged);
  return n.SliceAxis(whole, axis, 0, x.dim(axis));
}

void Dequantize(NodeContext& n) {
  n.RequireRank(0, 0);
  n.RequireRank(1, 0);
  if (n.failed()) return;
  const Tensor &x = n.input(0), &scale = n.input(1);
  // Differences of int8 don't fit in int8; in float32 they are exact.
  Tensor y = n.Cast(x, ir::kFloat32);
  if (n.has_input(2)) y = n.Sub(y, Spread(n, n.Cast(n.input(2), ir::kFloat32), x));
  y = n.Mul(y, Spread(n, n.Cast(scale, ir::kFloat32), x));
  n.SetOutput(n.Cast(y, scale.element()));
}

// Type and range of a quantization's result.
struct QuantizedType {
  ir::Type type = ir::kInt8;
  double least = INT8_MIN, most = INT8_MAX;
};

QuantizedType TypeOf(NodeContext& n, ir::Type type) {
  if (!type.is_int() || type.bits > 16) n.Unsupported("it quantizes to {}", ir::TypeName(type));
  const double values = std::ldexp(1.0, type.is_unsigned() ? type.bits : type.bits - 1);
  return {type, type.is_unsigned() ? 0 : -values, values - 1};
}
// Returns the type of the zero point, or of an attribute; otherwise uint8.
QuantizedType ReadQuantizedType(NodeContext& n) {
  if (n.has_input(2)) return TypeOf(n, n.input(2).element());
  int64_t number = n.Int("output_dtype", 0);
  if (number == 0) number = ::onnx::TensorProto::UINT8;
  const StatusOr<ir::Type> type =
      ElementType(static_cast<int>(std::clamp<int64_t>(number, -1, 99)));
  if (!type.ok()) n.Fail(type.status());
  return n.failed() ? QuantizedType() : TypeOf(n, *type);
}

// Returns the 8-bit float that is quantized to, if it is one. Numbers that are too large saturate;
// zero points are 0.
std::optional<ir::Type> QuantizedFloat(NodeContext& n) {
  ir::Type type = ir::kFloat32;
  if (n.has_input(2)) {
    type = n.input(2).element();
  } else {
    const int64_t number = std::clamp<int64_t>(n.Int("output_dtype", 0), -1, 99);
    type = ElementType(static_cast<int>(number)).value_or(type);
  }
  if (ir::Float8FormatOf(type) == nullptr) return std::nullopt;
  if (n.Int("saturate", 1) == 0)
    n.Unsupported("saturate is 0, and casts to {} saturate", ir::TypeName(type));
  return type;
}

// Returns x rounded and saturated.
Tensor Saturated(NodeContext& n, const Tensor& x, const QuantizedType& type) {
  const Tensor y = n.Emit("clip", {x}, {{"min", type.least}, {"max", type.most}});
  return n.Cast(y, type.type);
}

// Computes round(x / scale) + zero point.
Tensor Quantized(NodeContext& n, const Tensor& x, const Tensor& scale, const Tensor& zero_point,
                 const QuantizedType& type) {
  Tensor y = n.Emit("round", {n.Div(n.Cast(x, ir::kFloat32), scale)});
  if (zero_point.exists()) y = n.Add(y, zero_point);
  return Saturated(n, y, type);
}

void Quantize(NodeContext& n) {
  n.RequireRank(0, 0);
  n.RequireRank(1, 0);
  if (n.failed()) return;
  const std::optional<ir::Type> type_of_float = QuantizedFloat(n);
  const QuantizedType type = type_of_float ? QuantizedType() : ReadQuantizedType(n);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const Tensor scale = Spread(n, n.Cast(n.input(1), ir::kFloat32), x);
  if (type_of_float)
    return n.SetOutput(n.Cast(n.Div(n.Cast(x, ir::kFloat32), scale), *type_of_float));
  Tensor zero_point;
  if (n.has_input(2)) zero_point = Spread(n, n.Cast(n.input(2), ir::kFloat32), x);
  n.SetOutput(Quantized(n, x, scale, zero_point, type));
}

// Returns values of the rows of a matrix in the shape that broadcasts over it; a single one as a
// scalar.
Tensor OfRows(NodeContext& n, const Tensor& values) {
  if (n.failed() || values.rank() != 1) return values;
  return n.Reshape(values, values.dim(0) == 1 ? Shape{} : Shape{values.dim(0), 1});
}
// Returns values of the columns of a matrix, which broadcast unchanged; a single one as a scalar.
Tensor OfColumns(NodeContext& n, const Tensor& values) {
  return values.rank() == 1 && values.dim(0) == 1 ? n.Reshape(values, {}) : values;
}

// Returns the product of matrices in int32. Rows of the first and columns of the second have zero
// points.
Tensor IntegerProduct(NodeContext& n, int a, int a_zero_point, int b, int b_zero_point) {
  n.RequireRank(a, 1);
  n.RequireRank(b, 1);
  if (n.failed()) return Tensor::Missing();
  const Tensor &x = n.input(a), &y = n.input(b);
  const Tensor rows = WithoutZeroPoint(n, x, n.input(a_zero_point), std::max(x.rank() - 2, 0));
  return n.Emit("matmul", {rows, WithoutZeroPoint(n, y, n.input(b_zero_point), y.rank() - 1)});
}

void MatMulInteger(NodeContext& n) { n.SetOutput(IntegerProduct(n, 0, 2, 1, 3)); }

// Inputs: a, its scale and zero point, b, its scale and zero point, scale and zero point of y.
void QLinearMatMul(NodeContext& n) {
  for (int i = 0; i < 8; ++i) n.RequireRank(i, 0);
  if (n.failed()) return;
  const QuantizedType type = TypeOf(n, n.input(7).element());
  const Tensor product = IntegerProduct(n, 0, 2, 3, 5);
  const auto scale = [&](int i) { return n.Cast(n.input(i), ir::kFloat32); };
  const Tensor input_scale = n.Mul(OfRows(n, scale(1)), OfColumns(n, scale(4)));
  const Tensor y_scale = n.Div(OfRows(n, scale(6)), input_scale);
  n.SetOutput(Quantized(n, product, y_scale, OfRows(n, scale(7)), type));
}

// Inputs: those of QLinearMatMul, then a bias of the channels in int32, which has the scale of the
// products.
void QLinearConv(NodeContext& n) {
  for (int i = 0; i < 8; ++i) n.RequireRank(i, 0);
  if (n.failed()) return;
  const QuantizedType type = TypeOf(n, n.input(7).element());
  const Tensor product = WithChannelBias(n, IntegerConvolution(n, 0, 2, 3, 5), n.input(8));
  const auto scalar = [&](int i) { return n.Reshape(n.Cast(n.input(i), ir::kFloat32), {}); };
  const Tensor w_scale = n.Cast(n.input(4), ir::kFloat32);
  if (n.failed()) return;
  Shape channels;
  if (w_scale.num_elements() > 1) {
    channels.assign(n.input(0).shape().size(), 1);
    channels[1] = w_scale.num_elements();
  }
  const Tensor input_scale = n.Mul(scalar(1), n.Reshape(w_scale, std::move(channels)));
  n.SetOutput(Quantized(n, product, n.Div(scalar(6), input_scale), scalar(7), type));
}

// Quantizes to uint8 with a scale for the range of the elements. 0 is represented exactly.
void DynamicQuantize(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 0);
  if (n.failed()) return;
  const QuantizedType type = TypeOf(n, ir::kUInt8);
  const Tensor &x = n.input(0), zero = n.ScalarLike(x, 0), one = n.ScalarLike(x, 1);
  Shape axes(x.shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  const Tensor most = n.Emit("maximum", {n.Reduce("reduce_max", x, axes, false), zero});
  const Tensor least = n.Emit("minimum", {n.Reduce("reduce_min", x, axes, false), zero});
  const Tensor spread = n.Div(n.Sub(most, least), n.ScalarLike(x, type.most));
  // Any scale will do if all elements are 0.
  const Tensor scale = n.Where(n.Emit("equal", {spread, zero}), one, spread);
  const Tensor zero_point =
      Saturated(n, n.Emit("round", {n.Div(n.Emit("negative", {least}), scale)}), type);
  n.SetOutput(0, Quantized(n, x, scale, n.Cast(zero_point, ir::kFloat32), type));
  n.SetOutput(1, scale);
  n.SetOutput(2, zero_point);
}

}  // namespace

Tensor WithoutZeroPoint(NodeContext& n, const Tensor& x, const Tensor& zero_point, int64_t axis) {
  const Tensor wide = n.Cast(x, ir::kInt32);
  if (n.failed() || !zero_point.exists()) return wide;
  Shape shape = zero_point.shape();
  if (zero_point.num_elements() == 1) {
    shape.clear();
  } else if (zero_point.rank() == 1) {
    shape.assign(x.shape().size(), 1);
    shape[static_cast<size_t>(axis)] = zero_point.dim(0);
  }
  return n.Sub(wide, n.Reshape(n.Cast(zero_point, ir::kInt32), std::move(shape)));
}

std::vector<Rule> QuantizationRules() {
  return {{"QuantizeLinear", Quantize},
          {"DequantizeLinear", Dequantize},
          {"DynamicQuantizeLinear", DynamicQuantize},
          {"MatMulInteger", MatMulInteger},
          {"QLinearConv", QLinearConv},
          {"QLinearMatMul", QLinearMatMul}};
}

}  // namespace kiln::frontend
