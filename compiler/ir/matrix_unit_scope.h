// The threads of a GPU that feed a matrix unit together: the values of Hint::kMatrixUnit.
#pragma once

#include <cstdint>

#include "compiler/ir/hints.h"

namespace kiln::ir {

enum class MatrixUnitScope : int32_t { kNone, kWarp, kWarpgroup };

// The only architecture with units of four warps. Later ones have other units.
inline constexpr int kWarpgroupArch = 90;

inline MatrixUnitScope MatrixUnitScopeOf(const Hints& hints) {
  return static_cast<MatrixUnitScope>(hints[Hint::kMatrixUnit]);
}

}  // namespace kiln::ir
