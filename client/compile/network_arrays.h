// Compiled networks over arrays of the compiler's.
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

// One array per input: NDArray::FillRandom, in the range that the computation of a kernel gives it;
// what a kernel uses as an index stays inside of what it indexes. Refuses a network whose
// computations do not parse.
StatusOr<std::vector<ir::NDArray>> RandomInputs(const runtime::Network& network, uint64_t seed);

// One array per output. What is not written holds what nobody would compute (NDArray::Poison).
StatusOr<std::vector<ir::NDArray>> RunArrays(runtime::Executor& executor,
                                             std::span<const ir::NDArray> inputs);

}  // namespace kiln::client
