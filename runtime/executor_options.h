// Choices of a caller who loads a network.
#pragma once

#include "runtime/network_device_kinds.h"

namespace kiln::runtime {

struct CudaDriver;

// Operations of a network's kernels plus bytes of their arguments: about 0.1 to 0.5 ms of one core,
// and about 10 us.
inline constexpr double kLittleWork = 1 << 20;
inline constexpr double kHardlyAnyWork = 1 << 15;

struct ExecutorOptions {
  // Checks the constants' checksum when the file is opened.
  bool check_constants = true;
  // Number of threads on a CPU, the caller not included; 0: one per core that this process may run
  // on. A network of hardly any work has one.
  int threads = 0;
  // Ties each thread to a core of the CPU.
  bool pin = true;
  // Number of the GPU, as CUDA counts.
  int gpu = 0;
  // Streams that branches may use. 0: 4 or 1, by a few runs of both while the network is loaded
  // (some ten milliseconds, only for networks with branches). Branches that run beside each other
  // take room from each other, and the kernel after a join cannot be launched early.
  int streams = 0;
  // Null: the driver of this machine.
  const CudaDriver* driver = nullptr;
  // Kinds of devices that networks may run on. Its rows outlive the executor.
  NetworkDeviceKinds kinds = AllNetworkDeviceKinds();
};

}  // namespace kiln::runtime
