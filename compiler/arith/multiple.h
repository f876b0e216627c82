// Numbers that divide all values of an index: what is known of the alignment of an address.
#pragma once

#include <cstdint>

#include "compiler/arith/simplify.h"

namespace kiln::arith {

// Returns a number that divides every value of e, an expression of the simplifier; 0 if e is 0.
int64_t MultipleOf(Simplifier& simplifier, const Linear& e);

}  // namespace kiln::arith
