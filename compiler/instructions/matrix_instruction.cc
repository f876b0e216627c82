#include "compiler/instructions/matrix_instruction.h"

namespace kiln::instructions {

using ir::MatrixUnitScope;

std::string NameOf(const MatrixInstruction& instruction) {
  const bool is_of_warp = instruction.scope == MatrixUnitScope::kWarp;
  return (is_of_warp ? "mma_" : "wgmma_") + std::string(instruction.unit->name);
}

std::optional<MatrixInstruction> FindMatrixInstruction(std::string_view name) {
  for (const MatrixUnit& unit : MatrixUnits()) {
    for (const MatrixUnitScope scope : {MatrixUnitScope::kWarp, MatrixUnitScope::kWarpgroup}) {
      if (name == NameOf({&unit, scope})) return MatrixInstruction{&unit, scope};
    }
  }
  return std::nullopt;
}

}  // namespace kiln::instructions
