// The CPU of this machine, all its cores or `threads` of them, as a Device for trusted programs,
// which run in this process. A program that faults takes the process with it; sandboxed_cpu.h is
// for other programs. Programs are shared objects of proto/cpu_abi.h.
#pragma once

#include <memory>

#include "runner/cpu_calls.h"
#include "runner/device.h"

namespace kiln::runner {

std::unique_ptr<Device> MakeCpuDevice(const CpuDeviceOptions& options);

}  // namespace kiln::runner
