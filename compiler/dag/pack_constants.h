// Computations whose constants are known, for programs that take them packed (packed_inputs.h).
//
// Pure function.
#pragma once

#include "absl/functional/function_ref.h"
#include "compiler/dag/dag.h"

namespace kiln::dag {

// The same computation, whose programs take those inputs packed that `is_constant` (of their
// operators) accepts and that one reduction alone reads. Others are read too seldom for their order
// to matter. `dag` itself when there is none.
//
// TVM packs what operators mark as `layout_free_placeholders` (auto_scheduler layout rewrite), and so
// does PackInputs. In a network constants are known without marks: here every sum may have some.
DagPtr PackConstants(const DagPtr& dag, absl::FunctionRef<bool(int op)> is_constant);

}  // namespace kiln::dag
