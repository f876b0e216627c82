// The arguments that a program of a computation has: what a builder's launch plan must say of them.
// A program of another computation, or of the same one with other extents, is none of it, and the
// random values of its inputs would be others.
//
// Pure functions.
#pragma once

#include <vector>

#include "base/status.h"
#include "compiler/dag/text.h"
#include "proto/trial.pb.h"

namespace kiln::scheduler {

// Name, type, shape, role, index limit and range of each argument, in the order of
// dag::Dag::arguments().
std::vector<v1::ArgSpec> ArgumentsOf(const dag::DagText& text);

// InvalidArgument, with the first difference. Inputs may be packed, and workspaces may follow.
Status CheckPlan(const std::vector<v1::ArgSpec>& arguments, const v1::LaunchPlan& plan);

}  // namespace kiln::scheduler
