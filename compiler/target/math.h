// Option -math of CUDA targets: the precision in which sums of products of float32 may be computed.
// Without the option the precision is that of float32.
#pragma once

#include <string_view>

#include "compiler/target/target.h"

namespace kiln::target {

inline constexpr std::string_view kMath = "math";
// Factors may be rounded to 10 bits of the mantissa, which is the precision of matrix units.
inline constexpr std::string_view kTf32 = "tf32";

bool AllowsTf32(const Target& target);

}  // namespace kiln::target
