// The static memory plan: where in one arena each buffer lies, so that buffers which are never
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
  int64_t bytes = 1;            // at least 1
  int64_t alignment_bytes = 1;  // a power of two
  int32_t first = 0;            // kernel
  int32_t last = 0;             // kernel, itself included; not below `first`
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // one per need
  int64_t bytes = 0;             // of the arena
};

// Large buffers first, each into the smallest gap that it fits; the least arena there is where
// seven buffers or fewer are to be placed. Cost: quadratic in the number of buffers; some
// milliseconds for a thousand.
MemoryPlan PlanMemory(std::span<const MemoryNeed> needs);

// The most bytes that are live at once: no plan needs less.
int64_t PeakBytes(std::span<const MemoryNeed> needs);

// Two buffers, by number, that share memory while both are live.
struct MemoryConflict {
  size_t a = 0, b = 0;  // a < b
  int32_t at = 0;       // the first kernel that needs both
};
// Nothing: the plan is right. Offsets and sizes are not negative, and their sums fit. Cost: n log n.
std::optional<MemoryConflict> FindConflict(std::span<const MemoryNeed> needs,
                                           std::span<const int64_t> offsets);

}  // namespace kiln::runtime
