// What the results of a sum need of inputs, a bias or a residual sum, is loaded before the sum. Such a load takes
// hundreds of cycles, and compilers move no load over the wait for units that work beside the threads.
#pragma once

#include "compiler/ir/program.h"

namespace kiln::lower {

// In kernels of matrix units of four warps: statements behind the products of a tile that load elements of
// inputs get them from registers, which are loaded in front of the products. Left alone: loads under conditions
// or at places that are loaded themselves, and those for which a thread would need more than 16 registers of 4 bytes.
// Expects bound loops, before stores and loads become vectors; results stay the same.
void LoadBeforeSums(ir::Program& program);

}  // namespace kiln::lower
