// Which loops of a GPU kernel are unrolled. Internal to this folder.
//
// All loops of a kernel share one budget, because the compiler's time grows with their unrolled
// size together. It goes to
//   1. loops over register tiles, in all uses of a tile or in none: registers have no run-time
//      index, so one rolled loop puts the whole array into local memory. An array that is too large
//      for the registers of a thread stays in memory, and its loops are rolled;
//   2. loops that the schedule unrolls (unroll, virtual threads, vectors that became loops),
//      innermost loops first; in part where the whole loop is too long.
// The other loops, above all long reductions, stay loops, with a few copies where the body is
// short. NVRTC may unroll short ones on its own, but not those around long bodies.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// The budget of a kernel: what its loops may come to once unrolled (UnrollPlan::cost), as far as the
// schedule asks for it. Longer kernels take seconds to compile and do not fit the instruction cache
// (128 KiB).
inline constexpr int64_t kMaxUnrolledCost = 4000;

struct UnrollPlan {
  // Copies of the body: the extent for all, 1 for a loop that must stay one. Loops that are not
  // here are left to the compiler.
  absl::flat_hash_map<ir::Stmt, int64_t> copies;
  // Stores of the kernel with these loops unrolled, each with its operands. The compiler needs
  // about 0.5 ms for each.
  int64_t cost = 0;
};

// The largest local array that is kept in registers, in words of 4 bytes, `threads` per block. It is
// somewhat more than there are: a tile that hardly fits is better spilled than indexed.
int64_t MaxRegisterWords(int64_t threads);

// `body` of a kernel of `program` with `threads` per block.
UnrollPlan PlanUnrolling(const ir::Program& program, ir::Stmt body, int64_t threads);

}  // namespace kiln::codegen
