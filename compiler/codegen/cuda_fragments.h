// Register tiles that read shared memory a step of the reduction ahead. Internal to cuda_*.cc.
//
//   for k { for i { for j { acc[i, j] += a[k, i] * b[k, j] } } }
//
// becomes
//
//   read a[0, i] for all i, b[0, j] for all j into half 0 of the fragments
//   for k {
//     if k + 1 < n { read those of k + 1 into half (k + 1) % 2 }
//     for i { for j { acc[i, j] += a.fragment[k % 2, i] * b.fragment[k % 2, j] } }
//   }
//
// so that the reads of a step are under way during the multiplications of the one before. The
// steps are written out: a half that is a constant is a register. Left to itself the compiler
// reads late: 2048 x 2048 matrices with a tile of 16 x 8, 24 orders of its loops, medians on an
// H200: 389 us without, 370 with fragments, 364 when j runs to and fro besides (so that at its
// turns one operand of the multiplication before is used again).
//
// What is summed into an element, and in which order, stays the same.
#pragma once

#include "compiler/ir/program.h"

namespace kiln::codegen {

// Changes the tiles of stages that have `fragments`, whose loops are in the order that
// SinkRegisterLoops makes. Left as they are: tiles under conditions, of single bytes (they are
// multiplied four at a time), whose operands would need more registers than they are worth, and
// whose steps are too long to be written out. New statements, variables and buffers are the
// program's, so its pool must be its own.
void ReadFragmentsAhead(ir::Program& program);

}  // namespace kiln::codegen
