// Finds the buffers that statements use. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/program.h"

namespace kiln::codegen {

// Both lists are ascending and have each number once.
struct UsedNames {
  // Buffers that are stored to, loaded from or allocated.
  std::vector<int32_t> slots;
  // Variables that are read.
  std::vector<int32_t> vars;
};

// Linear in the statement, except for sorting: a program of thousands of kernels calls it for each
// kernel.
UsedNames NamesUsedIn(ir::Stmt stmt);

// Returns the ascending numbers of those arguments of the program that the kernel uses.
std::vector<int32_t> ArgumentsUsedBy(const ir::Program& program, const ir::Kernel& kernel);

}  // namespace kiln::codegen
