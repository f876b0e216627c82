// Runs one kernel of a compiled network by itself, on the device for which it was compiled.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/ndarray.h"
#include "runtime/executor.h"
#include "runtime/network_file.h"

namespace kiln::client {

// The kernel runs as a network of its own. `dag` is its computation (ComputationOf). `inputs` has
// one array per placeholder, none packed; the result has one per output. Cost: loading the binary,
// and one run.
StatusOr<std::vector<ir::NDArray>> RunKernel(const runtime::NetworkFile& file, size_t kernel,
                                             const dag::Dag& dag,
                                             std::span<const ir::NDArray> inputs,
                                             const runtime::ExecutorOptions& options);

}  // namespace kiln::client
