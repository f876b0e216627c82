// The work that no program for a computation can leave out, for floors of times.
#pragma once

#include "compiler/dag/dag.h"

namespace kiln::dag {

// Returns the operations of the outputs, and of the operators all of whose elements these need:
// each dimension of such an operator is read along a whole axis of a reader, at an index that is
// the axis itself, and not under a condition. Elements that are read otherwise may be needed in
// part or not at all, as those of a product of which a slice is taken: they do not count. Figures
// that users gave for operators do not count either. At least 0.
double LeastOperations(const Dag& dag);

}  // namespace kiln::dag
