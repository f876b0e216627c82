// Decides whether two target texts mean the same machine. `llvm -keys=cpu -mcpu=znver4` in a log
// and `llvm -mattr=-pku -mcpu=znver4 -num-cores=2` do, if the machine of the log had as many cores.
// Pure functions.
#pragma once

#include <string_view>

#include "compiler/target/target.h"
#include "device/hardware_params.h"

namespace kiln::target {

// Returns true if code for one target runs as code for the other and their costs compare. Both must
// be of one kind, name the same processor or none, and agree in every option that both give. An
// option that only one of them gives (features, cores, limits of a GPU) is no difference, so this
// is not an equivalence. Keys, libs, model, device, tag, host and the order of options and features
// have no effect on code. A level of x86-64 (-mcpu=x86-64-v4) means the same as a processor that
// has that level and no higher one.
bool MeanSame(const Target& a, const Target& b);

// Compares targets as records have them. If a text lacks the number of cores of a CPU, the hardware
// gives it: TVM counts two threads of an x86 as one. Options that are read nowhere are no
// difference (recorded.h). Texts that are no targets mean the same if they are equal.
bool MeanSame(std::string_view target_a, const HardwareParams& hardware_a,
              std::string_view target_b, const HardwareParams& hardware_b);

}  // namespace kiln::target
