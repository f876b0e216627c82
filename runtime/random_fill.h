// Values for inputs that nobody gives when a network is timed. They depend on a seed, and are the
// same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/dtype.h"

namespace kiln::runtime {

// Floats are in [-1, 1). Integers and bools are 0, which is a valid index, too.
void FillRandomly(std::span<std::byte> bytes, DType dtype, uint64_t seed);

}  // namespace kiln::runtime
