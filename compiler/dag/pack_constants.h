// Computations whose constants are known, for programs that take constants packed
// (packed_inputs.h).
//
// Pure function.
#pragma once

#include "absl/functional/function_ref.h"
#include "compiler/dag/dag.h"

namespace kiln::dag {

// Returns the same computation, whose programs take those inputs packed that exactly one reduction
// reads and for whose operators `is_constant` is true. Other inputs are read too seldom for their
// order to matter. Returns `dag` itself if there is no such input.
//
// TVM packs inputs that operators mark as `layout_free_placeholders` (auto_scheduler layout
// rewrite), and so does PackInputs. In a network constants are known without marks, and every sum
// may have some.
DagPtr PackConstants(const DagPtr& dag, absl::FunctionRef<bool(int op)> is_constant);

}  // namespace kiln::dag
