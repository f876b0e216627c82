// Loops of its own for each sum that matrix units compute.
//
// A reduction of several sums stores all of them in its innermost loop. An instruction of matrix
// units computes one of them, so the loops around the stores alone are written once for each sum:
//
//   for k, i, j {                        for k, i, j { a[i, j] = a[i, j] + x[i, k] * v[k, j] }
//     a[i, j] = a[i, j] + ...      ->    for k, i, j { b[i, j] = b[i, j] + x[i, k] * w[k, j] }
//     b[i, j] = b[i, j] + ...
//   }
//
// Statements around these loops, the copies of the next tiles say, stay once for all sums.
#pragma once

#include <vector>

#include "compiler/ir/program.h"
#include "compiler/lower/bounds.h"

namespace kiln::lower {

// For GPUs, before virtual threads are written out. `owners` says of each variable of the program
// which loop of a stage it is, and gets those of the new variables. Each element of a sum still
// adds its terms in the same order. Cost: linear in the program.
void SeparateSums(ir::Program& program, std::vector<LoopOwner>& owners);

}  // namespace kiln::lower
