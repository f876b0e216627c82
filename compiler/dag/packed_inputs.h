// Inputs that programs take packed: in the order in which the loops of the schedule read them
// (compiler/lower/packed_layout.h). For weights, which are known before the program runs.
//
// The packing is a part of the computation, the attribute `packed_placeholders` of the operator
// that reads the input. Computations with and without it have the same values, and different
// identities and keys, so that records of the one are never taken for records of the other.
//
// Pure functions.
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "compiler/dag/dag.h"

namespace kiln::dag {

// Returns the operators of these inputs, ascending.
std::vector<int> PackedInputs(const Dag& dag);

// Returns the same computation, whose programs take those inputs packed that may be laid out anew
// (`layout_free_placeholders`), that exactly one operator reads, and for whose operators
// `is_constant` is true. Returns `dag` itself if there is no such input.
DagPtr PackInputs(const DagPtr& dag, absl::FunctionRef<bool(int op)> is_constant);

// Returns the same computation, whose programs take all inputs as they are. Returns `dag` itself if
// they do so already.
DagPtr PlainInputs(const DagPtr& dag);

}  // namespace kiln::dag
