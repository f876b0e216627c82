// Runs code on a pretended x86 processor: its CPUID and XGETBV instructions give what the test
// says. The code runs in single steps, and each step is looked at before it is executed, which
// takes some 1 us.
#pragma once

#include <functional>

#include "device/x86_cpus.h"

namespace kiln {

// One call at a time in a process. The code takes no locks that others hold and starts no threads.
void RunOnPretendedCpu(const device::Cpuid& cpuid, const std::function<void()>& code);

}  // namespace kiln
