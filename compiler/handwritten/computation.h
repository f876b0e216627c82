// The computation of a hand-written kernel, as tasks and records have it.
//
// It is not the computation that a schedule search of the same operator has: records of
// hand-written kernels are not steps for that one. A tag on its outputs tells them apart, so that
// each has a workload id of its own; it changes nothing of what is computed.
//
// Pure functions.
#pragma once

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/handwritten/kernel_text.h"

namespace kiln::handwritten {

// The same computation, tagged with the kernel's digest and that of its reference. Twice is as
// once.
StatusOr<dag::DagPtr> TaggedComputation(const KernelText& text, const dag::DagPtr& dag);

// Of a kernel with a reference kernel: inputs and outputs as the text declares them. What the
// outputs are is said by the reference kernel alone; their bodies only name what is read.
StatusOr<dag::DagPtr> DeclaredComputation(const KernelText& text);

}  // namespace kiln::handwritten
