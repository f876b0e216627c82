// Values for inputs that nobody gives, when a network is timed: of a seed, the same everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/dtype.h"

namespace kiln::runtime {

// Floats in [-1, 1); integers and bools are 0, which is right for an index, too.
void FillRandomly(std::span<std::byte> bytes, DType dtype, uint64_t seed);

}  // namespace kiln::runtime
