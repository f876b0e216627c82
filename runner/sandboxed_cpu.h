// The CPU of this machine as a Device that runs each program in a process of its own
// (sandbox_process.h), a fork of this process. A program can harm only itself: inputs, reference
// outputs, comparisons and clocks are in this process, where the program's code never runs. Outputs
// are copied from memory that both processes share, while the program's process stands still.
#pragma once

#include <memory>

#include "runner/device.h"
#include "runner/sandbox_process.h"

namespace kiln::runner {

// Makes the device, in a process of one thread. Programs must be loaded with LoadFor, and only one
// exists at a time.
std::unique_ptr<Device> MakeSandboxedCpu(const SandboxProcess::Options& options);

}  // namespace kiln::runner
