// From which kernel to which the buffers of a network's arena are live.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/memory_plan.h"
#include "runtime/network.h"

namespace kiln::runtime {

struct LiveRanges {
  std::vector<int32_t> buffers;   // those of the arena that a kernel touches, in order
  std::vector<MemoryNeed> needs;  // one of each
};

// A buffer is live as long as any of its views; what an output of the network is copied from, to
// the end. The network's numbers of buffers are right; its offsets are not looked at.
LiveRanges LiveRangesOf(const Network& network);

}  // namespace kiln::runtime
