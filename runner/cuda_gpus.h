// What a runner announces of a GPU.
#pragma once

#include <string>
#include <vector>

#include "proto/tracker.pb.h"
#include "runtime/cuda_gpus.h"

namespace kiln::runner {

// "cuda -arch=sm_90", with what differs from most GPUs: "-max_threads_per_block=512".
std::string TargetOf(const runtime::CudaGpu& gpu);
// "cuda", "cuda/sm_90", "NVIDIA H200", "GPU-1f0c...".
std::vector<std::string> KeysOf(const runtime::CudaGpu& gpu);
// Read from the GPU, but for cores (-1: not a limit), vector width and cache line, which are
// conventions, and local memory, which has no limit of its own.
v1::HardwareParams HardwareOf(const runtime::CudaGpu& gpu);

}  // namespace kiln::runner
