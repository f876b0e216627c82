// Runs compiled networks on the compiler's arrays.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "compiler/ir/ndarray.h"
#include "graph/tensor_type.h"
#include "runtime/executor.h"
#include "runtime/network.h"

namespace kiln::client {

StatusOr<graph::TensorType> TypeOf(const runtime::NetworkTensor& tensor);

// Returns one random array per input (NDArray::FillRandom), in the range that the computation of a
// kernel gives it. Indices stay within the tensor that the kernel indexes. Refuses a network whose
// computations do not parse.
StatusOr<std::vector<ir::NDArray>> RandomInputs(const runtime::Network& network, uint64_t seed);

// Returns one array per output. Elements that are not written hold a value that nobody would
// compute (NDArray::Poison).
StatusOr<std::vector<ir::NDArray>> RunArrays(runtime::Executor& executor,
                                             std::span<const ir::NDArray> inputs);

}  // namespace kiln::client
