// Which inputs hold indices, and how large those may be. Pure; linear in the accesses.
#pragma once

#include <cstdint>

#include "compiler/dag/dag.h"

namespace kiln::dag {

// The smallest extent that elements of op i are used as an index of, directly or after operators
// that only copy or convert them; 0 when they are not.
int64_t IndexLimit(const Dag& dag, int op);

}  // namespace kiln::dag
