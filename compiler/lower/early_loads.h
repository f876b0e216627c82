// Loads elements of inputs that the results of a sum need, such as a bias or a residual sum, before
// the sum. Such a load takes hundreds of cycles, and compilers move no load over the wait for units
// that work beside the threads.
#pragma once

#include "compiler/ir/program.h"

namespace kiln::lower {

// Changes kernels of matrix units of four warps: statements behind the products of a tile that load
// elements of inputs get them from registers, which are loaded in front of the products. Some loads
// stay at their places: loads under conditions, loads whose indices are loaded, and loads for which
// a thread would need more than 16 registers of 4 bytes. Expects bound loops, and must run before
// stores and loads become vectors. Results stay the same.
void LoadBeforeSums(ir::Program& program);

}  // namespace kiln::lower
