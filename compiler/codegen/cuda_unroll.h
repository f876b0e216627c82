// Which loops of a GPU kernel are unrolled. Internal to cuda_*.cc.
//
// A kernel is unrolled as a whole under one budget, because the compiler's time grows with what all
// its loops come to:
//   1. Loops over register tiles, in all or in none of their uses: a register has no run-time
//      index, one rolled loop puts the whole array into local memory. Arrays that no thread has
//      registers for stay in memory, and their loops are rolled.
//   2. Then what the schedule asks for (unroll, virtual threads, vectors that became loops),
//      innermost loops first; in part where all of it is too long.
// What is left, above all long reductions, stays a loop, of a few copies where the body is short.
// NVRTC may unroll short ones on its own, but not those around long bodies.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

struct UnrollPlan {
  // Copies of the body: the extent for all, 1 for a loop that must stay one. Loops that are not
  // here are left to the compiler.
  absl::flat_hash_map<ir::Stmt, int64_t> copies;
  // Of the kernel with these loops written out: stores, each with its operands. The compiler needs
  // about 0.5 ms for each.
  int64_t cost = 0;
};

// `body` of a kernel of `program` with `threads` per block.
UnrollPlan PlanUnrolling(const ir::Program& program, ir::Stmt body, int64_t threads);

}  // namespace kiln::codegen
