// For tests of operators: one node, evaluated.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/ir/ndarray.h"

namespace kiln::graph {

// The outputs of `call`, an operator of inputs called a, b, c, ... with attributes behind it:
// RunOp("clip(a) {min: 0}", {x}). Refuses what the text form does.
StatusOr<std::vector<ir::NDArray>> TryOp(std::string_view call,
                                         const std::vector<ir::NDArray>& inputs,
                                         int num_outputs = 1);
// Of one output; must be fine.
ir::NDArray RunOp(std::string_view call, const std::vector<ir::NDArray>& inputs);

std::vector<double> Doubles(const ir::NDArray& array);

}  // namespace kiln::graph
