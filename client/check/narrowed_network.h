// Compares a network that computes in a float type of 16 bits (graph/passes/narrow_floats.h) with
// the same network in float32.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "client/check/verdict.h"
#include "compiler/ir/ndarray.h"
#include "graph/graph.h"

namespace kiln::client {

// Returns the name and the largest difference of each output. Both are evaluated on this machine's
// CPU (reference_programs.h), in some nanoseconds for each operation of the network. `inputs` match
// those of both graphs.
StatusOr<std::vector<Verdict>> CompareWithWide(const graph::Graph& narrow, const graph::Graph& wide,
                                               std::span<const ir::NDArray> inputs);

}  // namespace kiln::client
