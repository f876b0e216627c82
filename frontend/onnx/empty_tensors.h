// What nodes of the graph make of tensors without elements. Such tensors never get into the graph,
// so that this is told while the model is read.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "frontend/onnx/tensor.h"
#include "graph/attributes.h"

namespace kiln::frontend {

bool HasEmpty(std::span<const Tensor> inputs);

// The outputs of a node of which at least one input has no elements: tensors without elements, or
// what sums, products and their like are of nothing. Unimplemented: an operator that makes elements
// of nothing in another way. Pure; any thread; cost: that of two graph::InferTypes.
StatusOr<std::vector<Tensor>> EvaluateEmpty(std::string_view op, std::span<const Tensor> inputs,
                                            const graph::Attributes& attributes);

}  // namespace kiln::frontend
