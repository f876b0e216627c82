// Values that are known while the model is read: constants, shapes, and values derived from them.
#include <cmath>
#include <numbers>

#include "frontend/onnx/element_type.h"
#include "frontend/onnx/evaluate_known.h"
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

void Constant(NodeContext& n) {
  if (n.has("value")) return n.SetOutput(n.TensorOf("value"));
  if (n.has("value_float")) return n.SetOutput(n.Scalar(ir::kFloat32, n.Float("value_float", 0)));
  if (n.has("value_int")) return n.SetOutput(n.Constant({}, {n.Int("value_int", 0)}));
  if (n.has("value_ints")) {
    const Shape values = n.Ints("value_ints");
    return n.SetOutput(n.Constant({std::ssize(values)}, values));
  }
  if (n.has("value_floats")) {
    const std::vector<double> values = n.Floats("value_floats");
    return n.SetOutput(n.Constant(ir::kFloat32, {std::ssize(values)}, values));
  }
  if (n.has("sparse_value")) return n.Unsupported("a sparse tensor");
  if (n.has("value_string") || n.has("value_strings")) return n.Unsupported("elements of string");
  n.Invalid("it has no value");
}

Tensor Filled(NodeContext& n, const Tensor& value, Shape shape) {
  if (Tensor empty = Tensor::Empty({value.element(), shape}); empty.is_empty()) return empty;
  return n.BroadcastTo(n.Reshape(value, {}), std::move(shape));
}

void ConstantOfShape(NodeContext& n) {
  const Shape shape = n.KnownInts(0, "input");
  const Tensor value = n.has("value") ? n.TensorOf("value") : n.Scalar(ir::kFloat32, 0);
  if (n.failed()) return;
  if (!value.is_known() || value.num_elements() != 1) return n.Invalid("its value is no scalar");
  if (std::ranges::any_of(shape, [](int64_t extent) { return extent < 0; }))
    return n.Invalid("a shape with a negative extent");
  n.SetOutput(Filled(n, value, shape));
}

// Gives the extents from `start` to `end` of the axes. Both count from the end if they are
// negative, and are clamped.
void ShapeOf(NodeContext& n) {
  n.RequireRank(0, 0);
  if (n.failed()) return;
  const Shape& shape = n.input(0).shape();
  const int64_t rank = std::ssize(shape);
  const auto bound = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = bound(std::max(n.Int("start", 0), -rank));
  const int64_t end = bound(std::max(n.Int("end", rank), -rank));
  const Shape part(shape.begin() + start, shape.begin() + std::max(start, end));
  n.SetOutput(n.Constant({std::ssize(part)}, part));
}

void Size(NodeContext& n) {
  n.RequireRank(0, 0);
  if (!n.failed()) n.SetOutput(n.Constant({}, {n.input(0).num_elements()}));
}

void Range(NodeContext& n) {
  const double start = n.KnownFloat(0, "start"), limit = n.KnownFloat(1, "limit"),
               delta = n.KnownFloat(2, "delta");
  if (n.failed()) return;
  const double count = std::max(std::ceil((limit - start) / delta), 0.0);
  if (!(count <= static_cast<double>(kMaxKnownElements)))
    return n.Invalid("from {} to {} by {}: too many elements", start, limit, delta);
  std::vector<double> values;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i)
    values.push_back(start + static_cast<double>(i) * delta);
  n.SetOutput(n.Constant(n.input(0).element(), {std::ssize(values)}, values));
}

// Returns the type of an attribute, or `otherwise` if the attribute is not given.
ir::Type TypeOf(NodeContext& n, std::string_view attribute, ir::Type otherwise) {
  if (!n.has(attribute)) return otherwise;
  const int64_t number = std::clamp<int64_t>(n.Int(attribute, 0), -1, 1000);
  const StatusOr<ir::Type> type = ElementType(static_cast<int>(number));
  if (!type.ok()) n.Fail(type.status());
  return type.ok() ? *type : otherwise;
}

void EyeLike(NodeContext& n) {
  n.RequireRank(0, 2, 2);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const int64_t k = std::clamp<int64_t>(n.Int("k", 0), -x.dim(0), x.dim(1));
  const ir::Type type = TypeOf(n, "dtype", x.element());
  if (x.num_elements() > kMaxKnownElements)
    return n.Unsupported("a matrix of more than 2^20 elements");
  std::vector<double> eye(static_cast<size_t>(x.num_elements()), 0);
  for (int64_t row = 0; row < x.dim(0); ++row) {
    const int64_t column = row + k;
    if (column >= 0 && column < x.dim(1)) eye[static_cast<size_t>(row * x.dim(1) + column)] = 1;
  }
  n.SetOutput(n.Constant(type, x.shape(), eye));
}

void NonZero(NodeContext& n) {
  n.RequireRank(0, 0);
  const Tensor& x = n.input(0);
  if (!n.failed() && !x.is_known()) {
    return n.Unsupported(
        "the shape of its result depends on data, and shapes are static in Kiln: compute it "
        "outside "
        "of the network");
  }
  const std::vector<double> values = n.KnownFloats(0, "X");
  if (n.failed()) return;
  std::vector<Shape> found(static_cast<size_t>(x.rank()));
  const ir::NDArray index(ir::kBool, x.shape());
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) continue;
    const Shape at = index.Unflatten(static_cast<int64_t>(i));
    for (size_t d = 0; d < at.size(); ++d) found[d].push_back(at[d]);
  }
  Shape all;
  for (const Shape& row : found) all.insert(all.end(), row.begin(), row.end());
  const int64_t count = found.empty() ? 0 : std::ssize(found[0]);
  n.SetOutput(n.Constant({x.rank(), count}, all));
}

// Windows of signals: a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N).
Rule Window(std::string op, double a0, double a1, double a2) {
  return {std::move(op), [=](NodeContext& n) {
            const int64_t size = n.KnownInt(0, "size");
            const ir::Type type = TypeOf(n, "output_datatype", ir::kFloat32);
            if (n.failed()) return;
            if (size < 1 || size > kMaxKnownElements) return n.Invalid("a window of {}", size);
            const bool is_periodic = n.Int("periodic", 1) != 0;
            const auto period =
                static_cast<double>(is_periodic ? size : std::max<int64_t>(size - 1, 1));
            std::vector<double> values;
            for (int64_t i = 0; i < size; ++i) {
              const double angle = 2 * std::numbers::pi * static_cast<double>(i) / period;
              values.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
            }
            n.SetOutput(n.Constant(type, {size}, values));
          }};
}

}  // namespace

std::vector<Rule> ConstantRules() {
  return {{"Constant", Constant},
          {"ConstantOfShape", ConstantOfShape},
          {"Shape", ShapeOf},
          {"Size", Size},
          {"Range", Range},
          {"EyeLike", EyeLike},
          {"NonZero", NonZero},
          Window("HannWindow", 0.5, 0.5, 0),
          Window("HammingWindow", 25.0 / 46, 1 - 25.0 / 46, 0),
          Window("BlackmanWindow", 0.42, 0.5, 0.08)};
}

}  // namespace kiln::frontend
