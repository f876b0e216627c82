// A softmax chain (dag/softmax_chain.h) as one kernel: state with an OS step -> program.
//
// A block has the rows of its warps, `tile.rows` each, of one problem. It visits the keys a tile
// after the other, tiles that none of its rows sees left out:
//
//   query to shared memory
//   for each tile of keys:
//     keys and values to shared memory (ahead: fetch_ahead.h)
//     scores = query * keys                                  in registers
//     scores = logits of them; of no key: -inf
//     highest = max(highest before, scores)                  over the threads of a row
//     total, sums *= exp(highest before - highest)
//     scores = exp(scores - highest);  total += scores
//     weights = scores                                       to shared memory, rounded
//     sums += weights * values                               in registers
//   result of sums and total, over the threads of a row
//
// Threads lie in warps as the instructions of matrix units have them (codegen/cuda/matrix_tile.h):
// thread t of a warp has rows t/4 + 8 i and of each 8 keys or columns 2 (t%4) and the next one. So a
// row belongs to four threads of one warp, and what threads have to tell each other stays in their
// warp.
//
// With `tile.parts` there are so many warps for the same rows, each with a part of the keys of every
// tile. At the end they tell each other through shared memory what each has of a row, and each
// stores a part of the columns.
//
// Tiles are whole: terms, keys and columns beyond the ends are zeros, rows beyond are not stored.
#pragma once

#include "base/status.h"
#include "compiler/ir/program.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

// The state has such a tile, without blanks. Refuses matrix units where no product has factors of
// one.
StatusOr<ir::Program> BuildOnlineSoftmax(const schedule::State& state);

}  // namespace kiln::lower
