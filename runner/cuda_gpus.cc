#include "runner/cuda_gpus.h"

#include <algorithm>
#include <limits>

namespace kiln::runner {

using runtime::ArchOf;
using runtime::CudaGpu;

namespace {

// Limits of a target without options.
constexpr int64_t kUsualSharedBytes = 49152;
constexpr int kUsualThreads = 1024;
constexpr int kUsualWarp = 32;

}  // namespace

std::string TargetOf(const CudaGpu& gpu) {
  std::string target = fmt::format("cuda -arch={}", ArchOf(gpu));
  // The options are sorted, as the compiler prints them.
  if (gpu.max_shared_bytes_per_block != kUsualSharedBytes) {
    target += fmt::format(" -max_shared_memory_per_block={}", gpu.max_shared_bytes_per_block);
  }
  if (gpu.max_threads_per_block != kUsualThreads) {
    target += fmt::format(" -max_threads_per_block={}", gpu.max_threads_per_block);
  }
  if (gpu.warp_size != kUsualWarp) target += fmt::format(" -thread_warp_size={}", gpu.warp_size);
  return target;
}

std::vector<std::string> KeysOf(const CudaGpu& gpu) {
  return {"cuda", fmt::format("cuda/{}", ArchOf(gpu)), gpu.name, gpu.uuid};
}

v1::HardwareParams HardwareOf(const CudaGpu& gpu) {
  v1::HardwareParams hardware;
  hardware.set_num_cores(-1);
  hardware.set_vector_unit_bytes(16);
  hardware.set_cache_line_bytes(64);
  // One launch can get this much, because the runner opts in.
  hardware.set_max_shared_memory_per_block_bytes(
      std::max(gpu.max_shared_bytes_per_block, gpu.max_shared_bytes_per_block_optin));
  hardware.set_max_local_memory_per_block_bytes(std::numeric_limits<int32_t>::max());
  hardware.set_max_threads_per_block(gpu.max_threads_per_block);
  hardware.set_max_vthread_extent(gpu.warp_size / 4);
  hardware.set_warp_size(gpu.warp_size);
  return hardware;
}

}  // namespace kiln::runner
