// Reads a schedule that is source (docs/schedules.md): what PrintPrimitives (print.h) prints, and
// what people make of it.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

// The state of the computation after the steps that the statements are. Names stand for stages and
// loops; comments and empty lines are skipped.
//
// For every state x whose steps apply, ParsePrimitives(x.initial_dag(), PrintPrimitives(x)) has the
// same steps, but for what has no effect: the extents that SP steps note are those of the loops, 0
// where they are not known, and the loop of a PR step is kept.
//
// Errors: "line 3, column 14: expected a loop of C, which are C_i_0, C_i_1, found 'C_i', which was
// split"; of a step that the state refuses its reason, with the line. Cost: linear in the text and
// what the steps take.
StatusOr<State> ParsePrimitives(dag::DagPtr dag, std::string_view text);

}  // namespace kiln::schedule
