// The target of this machine's CPU, as a runner announces it.
#pragma once

#include <string>

namespace kiln::runner {

// Returns the target of code for this processor and this many threads, as a compiler on this
// machine names it (device/x86_cpus.h): "llvm -mattr=-mwaitx,-pku -mcpu=znver4 -num-cores=2". On
// machines other than x86 the machine stands for the processor.
std::string CpuTarget(int threads);

}  // namespace kiln::runner
