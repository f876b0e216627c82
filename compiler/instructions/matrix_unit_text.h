// The instructions of matrix units for one warp as device functions: mma.sync, ldmatrix, and what
// brings their operands into the right form.
//
// PTX ISA, "Matrix Fragments for mma" and "ldmatrix".
#pragma once

#include <set>
#include <string>

#include "compiler/instructions/matrix_unit.h"

namespace kiln::instructions {

// Returns the functions for kernels that multiply by these units. unzips_bytes: some kernels load
// pairs of bytes whose neighbours are not along the sum.
std::string MatrixUnitDefinitions(const std::set<const MatrixUnit*>& units, bool unzips_bytes);

}  // namespace kiln::instructions
