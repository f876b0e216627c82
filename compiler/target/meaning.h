// What targets mean, whatever their texts say: `llvm -keys=cpu -mcpu=znver4` of a log is the
// machine that calls itself `llvm -mattr=-pku -mcpu=znver4 -num-cores=2`, if it had as many cores.
// Pure functions.
#pragma once

#include <string_view>

#include "base/hardware_params.h"
#include "compiler/target/target.h"

namespace kiln::target {

// Is code for the one code for the other, and do costs compare? They are of one kind, both name the
// same processor or none, and what both say is the same. What one of them leaves open (features,
// cores, limits of a GPU) is no difference: so this is no equivalence. Keys, libs, model, device,
// tag, host and the order of options and features have no effect on code.
bool MeanSame(const Target& a, const Target& b);

// As records have them. Where a text does not say how many cores a CPU has, the hardware does: TVM
// counts two threads of an x86 as one. Texts that are no targets mean the same where they are the
// same.
bool MeanSame(std::string_view target_a, const HardwareParams& hardware_a,
              std::string_view target_b, const HardwareParams& hardware_b);

}  // namespace kiln::target
