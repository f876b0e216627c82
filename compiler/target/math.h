// Option -math of CUDA targets: how sums of products of float32 may be computed. Without it as
// float32 is.
#pragma once

#include <string_view>

#include "compiler/target/target.h"

namespace kiln::target {

inline constexpr std::string_view kMath = "math";
// Factors may be rounded to 10 bits of the mantissa, which is what matrix units multiply.
inline constexpr std::string_view kTf32 = "tf32";

bool AllowsTf32(const Target& target);

}  // namespace kiln::target
