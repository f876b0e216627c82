// The instructions of matrix units for four warps together (sm_90) as device functions.
//
// PTX ISA, "wgmma.mma_async".
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <string>

#include "compiler/instructions/matrix_unit.h"

namespace kiln::instructions {

// An instruction: 64 rows, `columns` columns, one step of the unit deep.
struct WarpgroupUnit {
  const MatrixUnit* unit = nullptr;
  // The instruction reads the first factor from shared memory.
  bool is_first_shared = false;
  int64_t columns = 0;
  auto operator<=>(const WarpgroupUnit&) const = default;
};
using WarpgroupUnits = std::set<WarpgroupUnit>;

// Returns the device functions for kernels that use these instructions.
std::string WarpgroupDefinitions(const WarpgroupUnits& units);

}  // namespace kiln::instructions
