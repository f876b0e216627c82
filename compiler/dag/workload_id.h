// The identity of a computation: the SHA-256 of its text form (text.h) in hex, 64 digits. The text
// has types, constants, extents of reductions and the order of the operators. Two computations of
// one identity therefore have the same stages, and steps for one are steps for the other. The
// identity tells apart computations that share a workload key (workload_key.h), which is only a
// label.
//
// Pure function. Cost: that of PrintDag.
#pragma once

#include <string>

#include "compiler/dag/dag.h"

namespace kiln::dag {

std::string WorkloadId(const Dag& dag);

}  // namespace kiln::dag
