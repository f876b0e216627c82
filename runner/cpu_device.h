// The CPU of this machine, all its cores or `threads` of them, as a Device whose programs run in
// this process: for programs that are trusted. One that faults takes the process with it.
// (sandboxed_cpu.h: for the others.) Programs are shared objects of proto/cpu_abi.h.
#pragma once

#include <memory>

#include "runner/cpu_calls.h"
#include "runner/device.h"

namespace kiln::runner {

std::unique_ptr<Device> MakeCpuDevice(const CpuDeviceOptions& options);

}  // namespace kiln::runner
