// One kernel of a compiled network by itself, on the device that it was compiled for.
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

// As a network of its own. `dag`: its computation (ComputationOf). `inputs`: one array per
// placeholder, none packed; result: one per output. Cost: that of loading its binary, and one run.
StatusOr<std::vector<ir::NDArray>> RunKernel(const runtime::NetworkFile& file, size_t kernel,
                                             const dag::Dag& dag,
                                             std::span<const ir::NDArray> inputs,
                                             const runtime::ExecutorOptions& options);

}  // namespace kiln::client
