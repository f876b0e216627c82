// Is a written combiner one that schedules may cut into pieces and reorder (reduction.h)? It is run
// on random values.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "compiler/dag/reduction.h"

namespace kiln::dag {

// Refuses: parts, types and numbers of expressions that do not fit each other, loads, divisors and
// shifts that are no good constants; and with a counterexample a combiner that is not associative,
// not commutative or changes what it combines with its identity for one of some hundred random
// values. Floats may differ by rounding. Cost: below a millisecond.
Status CheckCustomCombiner(const CustomCombiner& combiner, uint64_t seed = 1);

}  // namespace kiln::dag
