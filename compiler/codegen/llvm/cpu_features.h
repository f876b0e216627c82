// What a CPU must have to run the code for a target.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/target/target.h"

namespace kiln::codegen {

// Those of `names` (LLVM's, "avx512f") that the target's processor has, so that code for it may use
// them. Refuses what ResolveCpu (llvm.h) refuses. Not thread-safe, as all of this folder.
StatusOr<std::vector<std::string>> CpuFeaturesOf(const target::Target& target,
                                                 std::span<const std::string_view> names);

}  // namespace kiln::codegen
