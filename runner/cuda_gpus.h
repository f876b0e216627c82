// The description of a GPU that a runner announces.
#pragma once

#include <string>
#include <vector>

#include "proto/tracker.pb.h"
#include "runtime/cuda_gpus.h"

namespace kiln::runner {

// Returns "cuda -arch=sm_90", with options for limits that differ from most GPUs:
// "-max_threads_per_block=512".
std::string TargetOf(const runtime::CudaGpu& gpu);
// Returns "cuda", "cuda/sm_90", "NVIDIA H200", "GPU-1f0c...".
std::vector<std::string> KeysOf(const runtime::CudaGpu& gpu);
// Reads the parameters from the GPU. Cores (-1: not a limit), vector width and cache line are
// conventions instead, and local memory has no limit of its own.
v1::HardwareParams HardwareOf(const runtime::CudaGpu& gpu);

}  // namespace kiln::runner
