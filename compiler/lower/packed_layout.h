// The order in which a program takes a packed input (dag/packed_inputs.h): that in which the loops
// of the stage that reads it come by its elements.
//
// The packed buffer has one dimension for each part of a loop that the index of the read depends
// on, outermost first: loops that the stage is attached in come before its own, a fused loop counts
// as the loops that it was made of, a loop that the index does not depend on not at all. What a
// dimension's index is is the loop's variable, so the innermost loops walk along the buffer:
//
//   C[i, j] += A[i, k]*B[k, j], loops j.0 (2), k.0 (8), i, k.1 (4), j.1 (16):
//   B[k.0*4 + k.1, j.0*16 + j.1] is packed B[j.0, k.0, k.1, j.1]
//
// On a GPU the stage that reads is the one that fetches a tile into shared memory: the tile lies in
// memory as one piece, in the order in which the threads of a block fetch it, and tiles in the order
// of the loops around it.
//
// Where a split does not divide, the buffer is padded with zeros, which are never part of a result.
//
// An input stays as it is where the state has no steps (such a program is the reference, to which
// others are compared), on a GPU where no tile in shared memory is fetched of it (threads that read
// side by side want it so), where the reading stage is inlined or reads the input twice
// differently, where an index is no sum of loops that begins at 0, or where padding would make it
// more than twice as large.
#pragma once

#include <cstdint>
#include <vector>

#include "base/packing.h"
#include "compiler/ir/expr.h"
#include "compiler/lower/bounds.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

struct PackedInput {
  int32_t stage = -1;  // of the placeholder
  Packing packing = {};
  std::vector<ir::Expr> indices = {};  // of the one read of it, into the packed buffer
};

// A function of the state and the kind of target alone; the bounds are the state's for that kind.
std::vector<PackedInput> PackedLayouts(const schedule::State& state, Bounds& bounds, bool gpu);

}  // namespace kiln::lower
