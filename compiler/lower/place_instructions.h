// Finds the loops that one instruction of a thread computes (compiler/instructions/instruction.h).
//
//   for k in 0..8 { for j in 0..2 { c[j] = c[j] + int32(a[k])*int32(b[j, k]) } }
//
// becomes
//
//   for k_vec in 0..2 {
//     for j in 0..2 {
//       instruction dp4a {
//         for k_lane in 0..4 {
//           c[j] = c[j] + int32(a[k_vec*4 + k_lane])*int32(b[j, k_vec*4 + k_lane])
//         }
//       }
//     }
//   }
//
// if the four iterations of k_lane read neighbours that begin at a multiple of 4. A result is an
// integer, so that the order of the additions changes nothing.
#pragma once

#include "compiler/ir/program.h"

namespace kiln::lower {

// Places the instructions that GPUs of architecture `arch` have (90 is sm_90). Stages whose sums
// matrix units compute are left as they are. New statements and variables are the program's, so its
// pool must be its own. Cost: a few simplified addresses for each loop around a store that an
// instruction computes.
void PlaceInstructions(ir::Program& program, int arch);

}  // namespace kiln::lower
