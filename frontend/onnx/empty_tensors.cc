#include "frontend/onnx/empty_tensors.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "compiler/ir/ndarray.h"
#include "frontend/onnx/evaluate_known.h"
#include "graph/graph.h"

namespace kiln::frontend {
namespace {

using graph::TensorType;

// Returns the types of the outputs if extents of 0 are replaced by `stand_in`.
StatusOr<std::vector<TensorType>> TypesWith(int64_t stand_in, const graph::OpDef& op,
                                            std::span<const Tensor> inputs,
                                            const graph::Attributes& attributes) {
  std::vector<std::optional<TensorType>> types;
  for (const Tensor& input : inputs) {
    types.emplace_back();
    if (!input.exists()) continue;
    types.back() = input.type;
    std::ranges::replace(types.back()->shape, 0, stand_in);
  }
  return graph::InferTypes(op, attributes, types);
}

// Returns the value of a reduction over nothing.
std::optional<double> ValueOfNothing(std::string_view op, ir::Type type) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (op == "reduce_sum" || op == "matmul") return 0;
  if (op == "reduce_prod") return 1;
  if (op == "reduce_mean" && type.is_float()) return std::numeric_limits<double>::quiet_NaN();
  // Conversions to whole numbers turn infinities into the least and the largest number.
  if (op == "reduce_max") return type.is_bool() ? 0 : -kInfinity;
  if (op == "reduce_min") return type.is_bool() ? 1 : kInfinity;
  return std::nullopt;
}

StatusOr<Tensor> Nothing(std::string_view op, const TensorType& type) {
  const std::optional<double> value = ValueOfNothing(op, type.type);
  if (!value || type.num_elements() > kMaxKnownElements)
    return Unimplemented("{} of a tensor without elements", op);
  ir::NDArray array(type.type, type.shape);
  const ir::Value element = ir::CastValue(ir::Value::Float(*value), ir::kFloat64, type.type);
  for (int64_t i = 0; i < array.num_elements(); ++i) array.Set(i, element);
  return Tensor::Of(graph::Constant::FromArray(std::move(array)));
}

}  // namespace

bool HasEmpty(std::span<const Tensor> inputs) {
  return std::ranges::any_of(inputs, [](const Tensor& input) {
    return input.state == Tensor::State::kValue && input.is_empty();
  });
}

// An extent of an output grows linearly with the extents of the inputs, so two sizes tell the
// extent at 0.
StatusOr<std::vector<Tensor>> EvaluateEmpty(std::string_view op, std::span<const Tensor> inputs,
                                            const graph::Attributes& attributes) {
  KILN_ASSIGN_OR_RETURN(const graph::OpDef* def, graph::FindOp(op));
  KILN_ASSIGN_OR_RETURN(const graph::Attributes complete,
                        graph::CompleteAttributes(*def, attributes));
  const auto one = TypesWith(1, *def, inputs, complete), two = TypesWith(2, *def, inputs, complete);
  if (!one.ok() || !two.ok() || one->size() != two->size())
    return Unimplemented("{} of a tensor without elements", op);
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < one->size(); ++i) {
    TensorType type = (*one)[i];
    const std::vector<int64_t>& larger = (*two)[i].shape;
    if (larger.size() != type.shape.size())
      return Unimplemented("{} of a tensor without elements", op);
    for (size_t d = 0; d < larger.size(); ++d)
      type.shape[d] = std::max<int64_t>(2 * type.shape[d] - larger[d], 0);
    Tensor output = Tensor::Empty(type);
    if (!output.is_empty()) {
      KILN_ASSIGN_OR_RETURN(output, Nothing(op, type));
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace kiln::frontend
