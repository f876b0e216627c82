// One NVIDIA GPU as a Device, by the driver API alone. Programs are cubins.
//
// All work goes through one stream. Poison, checksums, comparison and the check of the guards run
// on the GPU; only their results are copied. A fault of a kernel (illegal address, trap) makes the
// process's context useless for ever: Usable() turns false, and the child ends.
//
// The device measures time by events around `number` calls. While the host queues the calls, a
// kernel that waits holds the GPU, so that the speed of the host does not count for short programs.
// docs/runner.md has the measurements with and without a CUDA graph.
#pragma once

#include <memory>

#include "runner/device.h"
#include "runtime/cuda_driver.h"
#include "runtime/cuda_gpus.h"

namespace kiln::runner {

struct CudaDeviceOptions {
  // Calls that one CUDA graph holds. Batches of at least as many calls are launched through the
  // graph, the rest one by one. 0 = no graphs.
  int graph_calls = 20;
  // Time for which the GPU is held while a batch is queued; 0 = not at all.
  int64_t lead_in_ns = 20'000;
  // Memory that the canary reads; 0 = twice the second-level cache, but at least 64 MiB.
  int64_t canary_bytes = 0;
};

// Takes the GPU's primary context and makes it current in this thread, in about 0.3 s. `driver`
// outlives the device.
StatusOr<std::unique_ptr<Device>> MakeCudaDevice(const runtime::CudaDriver& driver,
                                                 const runtime::CudaGpu& gpu,
                                                 const CudaDeviceOptions& options = {});

}  // namespace kiln::runner
