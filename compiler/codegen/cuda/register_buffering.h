// Register double buffering of operands: a register tile reads from shared memory one step of the
// reduction ahead. Internal to this folder.
//
//   for k { for i { for j { acc[i, j] += a[k, i] * b[k, j] } } }
//
// becomes
//
//   read a[0, i] for all i, b[0, j] for all j into half 0 of the operand registers
//   for k {
//     if k + 1 < n { read those of k + 1 into half (k + 1) % 2 }
//     for i { for j { acc[i, j] += a.registers[k % 2, i] * b.registers[k % 2, j] } }
//   }
//
// so that the reads of a step overlap the multiplications of the step before. The steps are
// unrolled: a half with a constant number is a register. The compiler itself issues the reads late.
// Medians over 24 orders of the loops of a tile of 16 x 8, matrices of 2048 x 2048, on an H200: 389
// us without double buffering, 370 us with it, 364 us if j also runs in serpentine order, so that
// at its turns an operand of the last multiplication is used again.
//
// Each element still adds the same terms in the same order.
#pragma once

#include "compiler/ir/program.h"

namespace kiln::codegen {

// Changes the tiles of stages that have Hint::kRegisterBuffering; their loops are in the order that
// SinkRegisterLoops makes. These tiles are left as they are: tiles under conditions; tiles of
// single bytes, which are multiplied four at a time; tiles whose sums or operands would need too many
// registers; and tiles whose steps are too long to unroll. New statements, variables and buffers
// are the program's, so its pool must be its own.
void DoubleBufferOperands(ir::Program& program);

}  // namespace kiln::codegen
