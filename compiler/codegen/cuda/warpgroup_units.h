// The instructions of four warps together (matrix_warpgroup.h) as functions of the preamble. Internal
// to this folder.
//
// Their text: PTX ISA, "wgmma.mma_async".
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <string>

#include "compiler/ir/matrix_unit.h"

namespace kiln::codegen {

// An instruction: 64 rows, so many columns, one step of the unit deep.
struct WarpgroupUnit {
  const ir::MatrixUnit* unit = nullptr;
  bool is_first_shared = false;  // does it read the first factor from shared memory?
  int64_t columns = 0;
  auto operator<=>(const WarpgroupUnit&) const = default;
};
using WarpgroupUnits = std::set<WarpgroupUnit>;

std::string WarpgroupDefinitions(const WarpgroupUnits& units);

}  // namespace kiln::codegen
