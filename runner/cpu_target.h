// What this machine's CPU is as a target, as a runner announces it.
#pragma once

#include <string>

namespace kiln::runner {

// The target of code for this processor and so many threads: "llvm -mattr=-mwaitx,-pku -mcpu=znver4
// -num-cores=2", as a compiler on this machine names it (device/x86_cpus.h). Elsewhere than on x86
// the machine stands for the processor.
std::string CpuTarget(int threads);

}  // namespace kiln::runner
