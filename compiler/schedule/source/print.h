// Prints a schedule as source (docs/schedules.md): primitives in the style of TVM's Python, which
// people read, change and hand back (parse.h).
#pragma once

#include <string>

#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Prints lines like "C_i_0, C_i_1 = s[C].split(C_i, factor=16)", one for each step and for each
// stage's loops. Names are unique (names.h). Cost: linear in the steps, plus the cost of applying
// them.
std::string PrintPrimitives(const State& state);

}  // namespace kiln::schedule
