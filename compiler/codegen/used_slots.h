// Which buffers statements use. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/program.h"

namespace kiln::codegen {

// Ascending, each once.
struct UsedNames {
  std::vector<int32_t> slots;  // of buffers that are stored to, loaded from or allocated
  std::vector<int32_t> vars;   // of variables that are read
};

// Linear in the statement, but for sorting: a program of thousands of kernels asks it of each.
UsedNames NamesUsedIn(ir::Stmt stmt);

// Of the buffers that a kernel uses those that the caller hands over: ascending numbers of arguments.
std::vector<int32_t> ArgumentsUsedBy(const ir::Program& program, const ir::Kernel& kernel);

}  // namespace kiln::codegen
