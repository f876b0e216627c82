// Offsets for the buffers of a network that is being made.
#pragma once

#include "base/status.h"
#include "runtime/network.h"

namespace kiln::runtime {

struct PlacedMemory {
  int64_t arena_bytes = 0;
  int64_t peak_bytes = 0;  // live at once: the least that any plan could do
  int64_t sum_bytes = 0;   // without reuse
};

// Sets the offsets of constants, in the order of their numbers, and of arena buffers, by
// PlanMemory; arena_bytes and constants_bytes. All else is set: places, sizes, alignments, views,
// kernels in order, outputs. Refuses what CheckNetwork refuses.
StatusOr<PlacedMemory> PlaceBuffers(Network& network);

}  // namespace kiln::runtime
