// Which threads of a GPU feed a matrix unit together: the values of Hint::kMatrixUnit.
#pragma once

#include <cstdint>

#include "compiler/ir/hints.h"

namespace kiln::ir {

enum class MatrixUnitScope : int32_t { kNone, kWarp, kWarpgroup };

// The architecture that has units of four warps; those behind it have others.
inline constexpr int kWarpgroupArch = 90;

inline MatrixUnitScope MatrixUnitScopeOf(const Hints& hints) {
  return static_cast<MatrixUnitScope>(hints[Hint::kMatrixUnit]);
}

}  // namespace kiln::ir
