// Prints a schedule as source (docs/schedules.md): primitives of TVM's Python flavour, that people read,
// change and hand back (parse.h).
#pragma once

#include <string>

#include "compiler/schedule/state.h"

namespace kiln::schedule {

// "C_i_0, C_i_1 = s[C].split(C_i, factor=16)", a line for each step and for each stage's loops. Names
// are unique (names.h). Cost: linear in the steps, and what they take.
std::string PrintPrimitives(const State& state);

}  // namespace kiln::schedule
