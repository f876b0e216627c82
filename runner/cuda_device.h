// One NVIDIA GPU as a Device, on the driver API alone. Programs are cubins.
//
// All work goes through one stream. Poison, checksums, comparison and the check of the guards run
// on the GPU; only their results are copied. A fault of a kernel (illegal address, trap) makes the
// process's context useless for ever: Usable() turns false, and the child ends.
//
// Timing: events around `number` calls. While the host queues them the GPU is held by a kernel that
// waits, so that short programs are not measured by the speed of the host. See docs/runner.md for
// what was measured with and without a CUDA graph.
#pragma once

#include <memory>

#include "runner/device.h"
#include "runtime/cuda_driver.h"
#include "runtime/cuda_gpus.h"

namespace kiln::runner {

struct CudaDeviceOptions {
  // Calls that one CUDA graph holds; batches of at least as many are launched through it, the rest
  // one by one. 0 = no graphs.
  int graph_calls = 20;
  // How long the GPU is held while a batch is queued; 0 = not at all.
  int64_t lead_in_ns = 20'000;
};

// `driver` outlives the device. Takes the GPU's primary context and makes it current in this
// thread; about 0.3 s.
StatusOr<std::unique_ptr<Device>> MakeCudaDevice(const runtime::CudaDriver& driver,
                                                 const runtime::CudaGpu& gpu,
                                                 const CudaDeviceOptions& options = {});

}  // namespace kiln::runner
