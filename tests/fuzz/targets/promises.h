// Properties that hold for every input, for targets to check.
#pragma once

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/program.h"
#include "compiler/schedule/state.h"

namespace kiln::fuzz {

// Checks that a refusal has a message, and blames the input.
void CheckRefusal(const Status& status);

// Returns roughly the operations of the plain loops; saturates.
double WorkIn(const dag::Dag& dag);

// Lowers the state, if its target can have it. The program must pass verification, print as the
// text that it parses from, and have finite features. It must compute what the DAG says, if both
// take less than `most_work` operations.
void CheckLowered(const schedule::State& state, bool gpu, double most_work);

// Checks that ProgramText and ParseProgram are inverse to each other.
void CheckPrintsAndParses(const ir::Program& program);

// Checks that all features are finite.
void CheckFeatures(const ir::Program& program, bool gpu);

}  // namespace kiln::fuzz
