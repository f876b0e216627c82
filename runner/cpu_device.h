// The CPU of this machine, all its cores or `threads` of them, as a Device. Programs are shared
// objects of proto/cpu_abi.h. A program that faults takes the process with it.
#pragma once

#include <memory>

#include "runner/device.h"

namespace kiln::runner {

struct CpuDeviceOptions {
  int threads = 0;  // 0 = every core this process may run on
  bool pin = true;
};
int DefaultCpuThreads();
std::unique_ptr<Device> MakeCpuDevice(const CpuDeviceOptions& options);

}  // namespace kiln::runner
