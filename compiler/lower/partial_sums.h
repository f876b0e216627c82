// Partial sums of matrix units on their way to other threads. If groups of warps share the terms of
// a sum, each stores what it has to shared memory, and all threads add these values up.
//
// A thread of a warp has neighbouring columns of eight rows' sums together with three others
// (codegen/cuda/matrix_tile.h). Stored element by element in rows of a power of two, the values of
// all eight rows meet in two to eight of the 32 banks. So neighbouring columns are stored at once
// (VectorizeStores in loops.h), and the rows lie swizzled (Hint::kSwizzle).
#pragma once

#include <cstdint>
#include <set>

#include "compiler/ir/program.h"

namespace kiln::lower {

// Returns the buffers of each thread in which matrix units sum products.
std::set<int32_t> SumsOfMatrixUnits(const ir::Program& program);

// Returns true if the store copies an element of such a buffer to shared memory.
bool IsPartialSum(const ir::Program& program, const std::set<int32_t>& sums, ir::Stmt store);

// Gives the hint to stages that store partial sums by vectors, if the rows have whole lines of 128
// bytes and the buffer takes no more room than without the hint. The meaning of the program stays.
void SwizzlePartialSums(ir::Program& program);

}  // namespace kiln::lower
