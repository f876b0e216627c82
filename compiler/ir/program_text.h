// Programs as text: pseudo-code to read, and it parses back to an equal program (ir::Equal).
//
//   program(
//     data: input float32[16, 64],
//     rows: input int32[16] below 100,         # an index: its values lie in [0, 100)
//     w: input float32[4, 64, 16] packed of [64, 64] by [1: 16, 0: 1, 1: 1],   #
//     base/arrays/packing.h relu: output float32[16, 64],
//   ) {
//     stage dense auto_unroll 64
//     stage relu
//     kernel dense grid [4, 1, 1] block [16, 1, 1] {
//       blockIdx.x i0 in 0..4 {
//         threadIdx.x i1 in 0..16 {
//           alloc dense_local: local float32[4]     # up to the end of its block, or { ... }
//           for j in 0..4 {
//             dense_local[j] = 0.0 @ dense          # @ the stage it computes
//           }
//           barrier
//           if i0*16 + i1 < 50 {
//             relu[i0, i1] = max(dense_local[0], 0.0) @ relu
//           }
//         }
//       }
//     }
//   }
//
// Loops: for, parallel, vectorize, unroll, vthread, blockIdx.x .. threadIdx.z. Expressions: text.h.
// A stage whose name is not unique is referred to by its number: @ 3. A '#' starts a comment.
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/program.h"

namespace kiln::ir {

// The program must be one that Verify accepts.
std::string ProgramText(const Program& program);

// Refuses text of another form, with line and column, and programs that Verify refuses.
StatusOr<Program> ParseProgram(std::string_view text);

}  // namespace kiln::ir
