// What holds of every input, for targets to check.
#pragma once

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/program.h"
#include "compiler/schedule/state.h"

namespace kiln::fuzz {

// A refusal says something, and blames the input.
void CheckRefusal(const Status& status);

// Roughly the operations of the plain loops; saturates.
double WorkIn(const dag::Dag& dag);

// Lowers the state, if its target can have it. The program is verified, prints as what it parses
// from, and has finite features. It computes what the DAG says, where both take less than
// `most_work` operations.
void CheckLowered(const schedule::State& state, bool gpu, double most_work);

// ProgramText and ParseProgram are each other's inverse.
void CheckPrintsAndParses(const ir::Program& program);

// All features are finite.
void CheckFeatures(const ir::Program& program, bool gpu);

}  // namespace kiln::fuzz
