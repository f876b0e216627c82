// A softmax chain (dag/softmax_chain.h) as one kernel, or two. Lowers a state with an OS step to a
// program.
//
// A block has the rows of its warps, `tile.rows` each, of one problem. It visits the keys one tile
// after the other, and leaves out tiles that none of its rows sees:
//
//   query to shared memory
//   for each tile of keys:
//     keys and values to shared memory (ahead: fetch_ahead.h)
//     scores = query * keys                                  in registers
//     scores = logits of them; -inf for missing keys
//     highest = max(highest before, scores)                  over the threads of a row
//     total, sums *= exp(highest before - highest)
//     scores = exp(scores - highest);  total += scores
//     weights = scores                                       to shared memory, rounded
//     sums += weights * values                               in registers
//   result of sums and total, over the threads of a row
//
// Threads lie in warps as the instructions of matrix units have them (codegen/cuda/matrix_tile.h):
// thread t of a warp has rows t/4 + 8 i, and of each 8 keys or columns number 2 (t%4) and the next
// one. So a row belongs to four threads of one warp, and threads exchange values only within their
// warp.
//
// With `tile.parts` that many warps have the same rows, each with a part of the keys of every tile.
// At the end they exchange their values of a row through shared memory, and each stores a part of
// the columns.
//
// With `tile.splits` that many blocks have the same rows, each with a part of the tiles of keys.
// They join their results as parts do: as a cluster, in each other's shared memory; else through
// global memory, where a second kernel joins them.
//
// Tiles are whole: terms, keys and columns beyond the ends are zeros, and rows beyond the end are
// not stored.
#pragma once

#include "base/status.h"
#include "compiler/ir/program.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

// The state must have such a tile, without blanks. Refuses matrix units if no product has factors
// that a unit can multiply.
StatusOr<ir::Program> BuildOnlineSoftmax(const schedule::State& state);

}  // namespace kiln::lower
