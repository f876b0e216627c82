// Runs code that believes to be on another x86 processor: the CPUID and XGETBV instructions in it
// give what the test says. The code runs in single steps, each of which is looked at before it is
// executed, some 1 us a step.
#pragma once

#include <functional>

#include "device/x86_cpus.h"

namespace kiln {

// One at a time in a process; the code takes no locks that others hold and starts no threads.
void RunOnPretendedCpu(const device::Cpuid& cpuid, const std::function<void()>& code);

}  // namespace kiln
