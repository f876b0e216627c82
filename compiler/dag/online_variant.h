// The values that a program that computes a softmax chain online (softmax_chain.h) may give if the
// computation gives NaN.
//
// The computation multiplies every value by its weight, so an infinite value of the weight 0 makes
// its row NaN. A program that visits one tile of keys after the other differs in two ways:
//   * it does not visit tiles that a causal mask hides from all of a block's rows, so that the
//     values there do nothing;
//   * it multiplies a value before it knows the highest logit of the row. A weight that rounds to 0
//     beside the highest of all keys may be above 0 beside the highest so far, and then an infinite
//     value makes the row infinite.
// Both differences only concern values that are infinite or NaN. Finite values give the same
// results.
//
// Pure functions.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/ndarray.h"

namespace kiln::dag {

// Returns the same computation with hidden values left out, and with weights in float64 that are
// not rounded. Inputs and output are the same. NotFound: the computation is no softmax chain.
StatusOr<DagPtr> OnlineVariant(const Dag& dag);

// Replaces elements of `expected` that are NaN by those of `variant`, the result of the online
// variant, unless `found` is NaN there as well. Returns the number of replaced elements. All arrays
// have one type and shape.
int64_t TakeVariantOfNaN(const ir::NDArray& found, const ir::NDArray& variant,
                         ir::NDArray& expected);

}  // namespace kiln::dag
