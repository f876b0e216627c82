// The option -thread_warp_size of CUDA targets. Schedules can be made for warps of other sizes, but
// kernels cannot.
#pragma once

#include "base/status.h"
#include "compiler/target/target.h"

namespace kiln::target {

// Returns InvalidArgument if programs of the target run on a GPU, whose warps have 32 threads, and
// the target gives another number.
Status CheckWarpSize(const Target& target);

}  // namespace kiln::target
