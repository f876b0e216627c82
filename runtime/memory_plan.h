// The static memory plan: the place of each buffer in one arena, so that buffers which are never
// live together share memory.
//
// Pure functions. Time is counted in kernels: a buffer is live from the first kernel that touches
// it to the last.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kiln::runtime {

struct MemoryNeed {
  // At least 1.
  int64_t bytes = 1;
  // A power of two.
  int64_t alignment_bytes = 1;
  // First kernel.
  int32_t first = 0;
  // Last kernel, itself included; not below `first`.
  int32_t last = 0;
};

struct MemoryPlan {
  // One offset per need.
  std::vector<int64_t> offsets;
  // Bytes of the arena.
  int64_t bytes = 0;
};

// Places large buffers first, each into the smallest gap or at the lowest place that it fits,
// whichever gives the smaller arena. The arena is the smallest possible one for seven buffers or
// fewer. Cost: quadratic in the number of buffers; some milliseconds for a thousand.
MemoryPlan PlanMemory(std::span<const MemoryNeed> needs);

// Returns the most bytes that are live at once. No plan needs less.
int64_t PeakBytes(std::span<const MemoryNeed> needs);

// Two buffers, by number, that share memory while both are live.
struct MemoryConflict {
  // a < b
  size_t a = 0, b = 0;
  // The first kernel that needs both.
  int32_t at = 0;
};
// Returns nothing if the plan is right. Offsets and sizes must not be negative, and their sums must
// fit. Cost: n log n.
std::optional<MemoryConflict> FindConflict(std::span<const MemoryNeed> needs,
                                           std::span<const int64_t> offsets);

}  // namespace kiln::runtime
