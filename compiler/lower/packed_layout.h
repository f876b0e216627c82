// The order in which a program takes a packed input (dag/packed_inputs.h): the order in which the
// loops of the stage that reads the input visit its elements.
//
// The packed buffer has one dimension for each part of a loop that the index of the read depends
// on, outermost first: loops that the stage is attached in come before its own, a fused loop counts
// as the loops that it was made of, and a loop that the index does not depend on does not count.
// The index of a dimension is the loop's variable, so the innermost loops walk along the buffer:
//
//   C[i, j] += A[i, k]*B[k, j], loops j.0 (2), k.0 (8), i, k.1 (4), j.1 (16):
//   B[k.0*4 + k.1, j.0*16 + j.1] is packed B[j.0, k.0, k.1, j.1]
//
// On a GPU the reading stage is the one that fetches a tile into shared memory. The tile lies in
// memory as one piece, in the order in which the threads of a block fetch it, and tiles lie in the
// order of the loops around them.
//
// If a split does not divide, the buffer is padded with zeros, which are never part of a result.
//
// An input stays as it is in these cases: the state has no steps (such a program is the reference,
// to which others are compared); on a GPU no tile in shared memory is fetched from it (threads that
// read side by side need the plain order); the reading stage is inlined or reads the input in two
// ways; an index is no sum of loops that begins at 0; or padding would make the input more than
// twice as large.
#pragma once

#include <cstdint>
#include <vector>

#include "base/arrays/packing.h"
#include "compiler/ir/expr.h"
#include "compiler/lower/bounds.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

struct PackedInput {
  // Stage of the placeholder.
  int32_t stage = -1;
  Packing packing = {};
  // Indices of its only read, into the packed buffer.
  std::vector<ir::Expr> indices = {};
};

// The result depends only on the state and the kind of target. `bounds` are the state's for that
// kind.
std::vector<PackedInput> PackedLayouts(const schedule::State& state, Bounds& bounds, bool gpu);

}  // namespace kiln::lower
