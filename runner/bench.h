// The place where programs are run and checked. Used by the thread of the device.
#pragma once

#include "runner/buffer_cache.h"
#include "runner/device.h"

namespace kiln::runner {

// A device, and the inputs and reference outputs of recent programs in its memory. Both outlive
// those who use the bench.
struct Bench {
  Device& device;
  BufferCache& cache;
};

}  // namespace kiln::runner
