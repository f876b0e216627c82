// Computes offsets for the buffers of a network that is being made.
#pragma once

#include "base/status.h"
#include "runtime/network.h"

namespace kiln::runtime {

struct PlacedMemory {
  int64_t arena_bytes = 0;
  // Most bytes that are live at once: the minimum of any plan.
  int64_t peak_bytes = 0;
  // Bytes without reuse.
  int64_t sum_bytes = 0;
};

// Sets the offsets of constants, in the order of their numbers, and of arena buffers, by
// PlanMemory, and arena_bytes and constants_bytes. The caller has set everything else: places,
// sizes, alignments, views, kernels in order, outputs. Refuses networks that CheckNetwork refuses.
StatusOr<PlacedMemory> PlaceBuffers(Network& network);

}  // namespace kiln::runtime
