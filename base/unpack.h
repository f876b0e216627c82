// Packed arrays (packing.h) as they were before.
//
// Pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/packing.h"

namespace kiln {

// What Pack gave `packed` is `plain`. Padding is not looked at; of an element that is there more than
// once the last one counts. Some 100 million elements a second, of which each takes 8 bytes of memory
// beside the arrays.
void Unpack(const Packing& packing, int64_t element_bytes, std::span<const std::byte> packed,
            std::span<std::byte> plain);

}  // namespace kiln
