// Inputs whose first line names a case of the operator library, and schedules of such a case.
#pragma once

#include <string_view>

#include "compiler/dag/dag.h"
#include "compiler/schedule/state.h"

namespace kiln::fuzz {

// Returns the computation of the small case of this name (compiler/dag/ops/op_cases_testing.h);
// null if there is none.
dag::DagPtr OpCaseOf(std::string_view name);

// Checks that the schedule prints as source that reads back to the same loops. Returns the state
// that was read.
schedule::State CheckSource(const schedule::State& state);

}  // namespace kiln::fuzz
