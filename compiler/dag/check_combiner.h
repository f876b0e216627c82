// Checks by running on random values whether schedules may cut a written combiner into pieces and
// reorder it (reduction.h).
#pragma once

#include <cstdint>

#include "base/status.h"
#include "compiler/dag/reduction.h"

namespace kiln::dag {

// Refuses a combiner whose parts, types and numbers of expressions do not fit each other, or whose
// expressions have loads, or divisors and shifts that are not constants in range. Also refuses,
// with a counterexample, a combiner that is not associative, not commutative or changes a value
// that it combines with its identity for one of some hundred random values. Floats may differ by
// rounding. Cost: below a millisecond.
Status CheckCustomCombiner(const CustomCombiner& combiner, uint64_t seed = 1);

}  // namespace kiln::dag
