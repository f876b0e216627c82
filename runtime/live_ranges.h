// The kernels between which the buffers of a network's arena are live.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/memory_plan.h"
#include "runtime/network.h"

namespace kiln::runtime {

struct LiveRanges {
  // The arena buffers that a kernel touches, in order.
  std::vector<int32_t> buffers;
  // The need of each buffer.
  std::vector<MemoryNeed> needs;
};

// A buffer is live as long as any of its views. A buffer that an output of the network is copied
// from is live to the end. The network's buffer numbers must be right; its offsets are not looked
// at.
LiveRanges LiveRangesOf(const Network& network);

}  // namespace kiln::runtime
