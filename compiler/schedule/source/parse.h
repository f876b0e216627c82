// Reads a schedule that is source (docs/schedules.md): the output of PrintPrimitives (print.h),
// which people may have changed.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Returns the state of the computation after the steps of the statements. Names stand for stages
// and loops; comments and empty lines are skipped.
//
// For every state x whose steps apply, ParsePrimitives(x.initial_dag(), PrintPrimitives(x)) has the
// same steps, except for fields without effect: the extents that SP steps note are those of the
// loops, or 0 if not known. The loop of a PR step is kept.
//
// Errors: "line 3, column 14: expected a loop of C, which are C_i_0, C_i_1, found 'C_i', which was
// split". For a step that the state refuses, the error has the reason and the line. Cost: linear in
// the text, plus the steps.
StatusOr<State> ParsePrimitives(dag::DagPtr dag, std::string_view text);

}  // namespace kiln::schedule
