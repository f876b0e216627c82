// Converts packed arrays (packing.h) back to plain ones.
//
// Pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/arrays/packing.h"

namespace kiln {

// Restores the array `plain` that Pack turned into `packed`. Padding is not looked at. If an
// element is there more than once, its last copy counts. Speed: some 100 million elements a second.
// Each element takes 8 bytes of memory beside the arrays.
void Unpack(const Packing& packing, int64_t element_bytes, std::span<const std::byte> packed,
            std::span<std::byte> plain);

}  // namespace kiln
