// Instructions of matrix units as statements of programs: `instruction mma_f16 {` around the loops
// of a tile, `instruction wgmma_f16 {` around one that four warps compute together. The loops are
// those of each thread. They say what the threads of a warp, or of four, compute together.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/matrix_unit_scope.h"

namespace kiln::instructions {

struct MatrixInstruction {
  const MatrixUnit* unit;
  ir::MatrixUnitScope scope;
};

// Returns "mma_f16", "wgmma_f16". The scope is not kNone.
std::string NameOf(const MatrixInstruction& instruction);
// None: no instruction of a matrix unit has this name.
std::optional<MatrixInstruction> FindMatrixInstruction(std::string_view name);

}  // namespace kiln::instructions
