// The arguments that a program of a computation has. A builder's launch plan must state the same
// arguments: a plan with others belongs to a program of another computation, or of other extents,
// and the random values of its inputs would differ.
//
// Pure functions.
#pragma once

#include <vector>

#include "base/status.h"
#include "compiler/dag/text.h"
#include "proto/trial.pb.h"

namespace kiln::scheduler {

// Returns name, type, shape, role, index limit and range of each argument, in the order of
// dag::Dag::arguments().
std::vector<v1::ArgSpec> ArgumentsOf(const dag::DagText& text);

// InvalidArgument names the first difference. Inputs may be packed, and workspaces may follow.
Status CheckPlan(const std::vector<v1::ArgSpec>& arguments, const v1::LaunchPlan& plan);

}  // namespace kiln::scheduler
