// Checks that the machine code of a schedule computes what its DAG says.
#pragma once

#include "tests/schedules/check_program.h"

namespace kiln {

// Compiles the state by LLVM for this machine and runs the program between guard pages. The error
// holds the steps and the program.
Status CheckByLlvm(const Workload& workload, const schedule::State& state);

}  // namespace kiln
