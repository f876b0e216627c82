// What a program that computes a softmax chain online (softmax_chain.h) may give where the computation
// gives NaN.
//
// The computation multiplies every value by its weight, so that an infinite value of the weight 0
// makes its row NaN. A program that visits a tile of keys after the other differs in two ways:
//   * it does not visit tiles that a causal mask hides from all of a block's rows, so that the
//     values there do nothing;
//   * it multiplies a value before it knows the highest logit of the row. A weight that rounds to 0
//     beside the highest of all keys may be above 0 beside the highest so far, and then an infinite
//     value makes the row infinite.
// Both have to do with values that are infinite or NaN. No finite value is told apart by them.
//
// Pure functions.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/ndarray.h"

namespace kiln::dag {

// The same computation with hidden values left out, and weights in float64 that are not rounded.
// Inputs and output are the same. NotFound: it is no softmax chain.
StatusOr<DagPtr> OnlineVariant(const Dag& dag);

// Where an element of `expected` is NaN and that of `found` is not, expected takes that of `variant`,
// which is what the variant of the computation gives. How many there are. All have one type and shape.
int64_t TakeVariantOfNaN(const ir::NDArray& found, const ir::NDArray& variant,
                         ir::NDArray& expected);

}  // namespace kiln::dag
