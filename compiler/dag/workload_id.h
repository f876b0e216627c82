// The identity of a computation: the SHA-256 of its text form (text.h) in hex, 64 digits. Types,
// constants, extents of reductions and the order of the operators are in it, so two computations of
// one identity have the same stages, and steps for one are steps for the other. What the workload
// key (workload_key.h) leaves out tells them apart here: the key is a label that several
// computations may bear.
//
// Pure function. Cost: that of PrintDag.
#pragma once

#include <string>

#include "compiler/dag/dag.h"

namespace kiln::dag {

std::string WorkloadId(const Dag& dag);

}  // namespace kiln::dag
