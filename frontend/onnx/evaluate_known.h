// Computes nodes over constants while a model is read.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "frontend/onnx/tensor.h"
#include "graph/graph.h"

namespace kiln::frontend {

// Tensors with more elements are left to the network, and so is work of more steps, of some tens of
// nanoseconds each.
inline constexpr int64_t kMaxKnownElements = int64_t{1} << 20;
inline constexpr int64_t kMaxKnownWork = int64_t{1} << 24;

// Returns the outputs of an operator of the graph if all its inputs are known and neither they nor
// the work are large. The oracle computes them, so they are what the node would compute. The work
// is taken off `budget`; work beyond the budget is left to the network. A view of a constant shares
// its memory, however large it is. Refuses what GraphBuilder::Add refuses.
StatusOr<std::optional<std::vector<Tensor>>> EvaluateKnown(std::string_view op,
                                                           std::span<const Tensor> inputs,
                                                           const graph::Attributes& attributes,
                                                           const std::string& origin,
                                                           int64_t& budget);

}  // namespace kiln::frontend
