// Evaluates nodes over tensors without elements. The graph never has such tensors, so these nodes
// are evaluated while the model is read.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "frontend/onnx/tensor.h"
#include "graph/attributes.h"

namespace kiln::frontend {

bool HasEmpty(std::span<const Tensor> inputs);

// Returns the outputs of a node of which at least one input has no elements: tensors without
// elements, or the values of sums, products and the like over nothing. Unimplemented: an operator
// that makes elements from nothing in another way. Pure; any thread. Cost: that of two
// graph::InferTypes.
StatusOr<std::vector<Tensor>> EvaluateEmpty(std::string_view op, std::span<const Tensor> inputs,
                                            const graph::Attributes& attributes);

}  // namespace kiln::frontend
