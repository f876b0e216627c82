// Option -thread_warp_size of CUDA targets. Schedules can be made for other warps, kernels can't be.
#pragma once

#include "base/status.h"
#include "compiler/target/target.h"

namespace kiln::target {

// InvalidArgument: programs of the target are to run on a GPU, whose warps have 32 threads, and it
// says another number.
Status CheckWarpSize(const Target& target);

}  // namespace kiln::target
