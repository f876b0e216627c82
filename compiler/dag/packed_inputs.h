// Inputs that programs take packed: in the order in which the loops of the schedule read them
// (compiler/lower/packed_layout.h), for weights, which are known before the program runs.
//
// It is a part of the computation, the attribute `packed_placeholders` of the operator that reads
// the input: computations with and without it have the same values, and different identities and
// keys, so that records of the one are never taken for records of the other.
//
// Pure functions.
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "compiler/dag/dag.h"

namespace kiln::dag {

// The operators of these inputs, ascending.
std::vector<int> PackedInputs(const Dag& dag);

// The same computation, whose programs take those inputs packed that `is_constant` (of their
// operators) accepts, that may be laid out anew (`layout_free_placeholders`), and that one operator
// alone reads. `dag` itself when there is none.
DagPtr PackInputs(const DagPtr& dag, absl::FunctionRef<bool(int op)> is_constant);

// The same computation, whose programs take all inputs as they are. `dag` itself when they do.
DagPtr PlainInputs(const DagPtr& dag);

}  // namespace kiln::dag
