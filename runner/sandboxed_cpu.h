// The CPU of this machine as a Device whose programs run each in a process of its own
// (sandbox_process.h), a fork of this one. What a program does costs the program: inputs, reference
// outputs, comparisons and clocks are here, where its code never is.
#pragma once

#include <memory>

#include "runner/device.h"
#include "runner/sandbox_process.h"

namespace kiln::runner {

// For a process of one thread. Programs must be loaded with LoadFor, and one at a time is alive.
std::unique_ptr<Device> MakeSandboxedCpu(const SandboxProcess::Options& options);

}  // namespace kiln::runner
