// The computation of a hand-written kernel, as tasks and records have it.
//
// It differs from the computation that a schedule search of the same operator has: records of
// hand-written kernels are not steps for that search. A tag on the outputs tells the two apart, so
// that each has its own workload id. The tag does not change the values.
//
// Pure functions.
#pragma once

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/handwritten/kernel_text.h"

namespace kiln::handwritten {

// Returns the same computation, tagged with the kernel's digest and that of its reference. A second
// tag replaces the first one.
StatusOr<dag::DagPtr> TaggedComputation(const KernelText& text, const dag::DagPtr& dag);

// Returns the computation of a kernel with a reference kernel: inputs and outputs as the text
// declares them. Only the reference kernel defines the outputs. Their bodies merely name the inputs
// that are read.
StatusOr<dag::DagPtr> DeclaredComputation(const KernelText& text);

}  // namespace kiln::handwritten
