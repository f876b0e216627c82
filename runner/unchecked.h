// Outputs that cannot tell a right program from a wrong one.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runner/arguments.h"

namespace kiln::runner {

// Why an output of a reference proves little of what is compared with it; empty: it does.
//
//   "output y of the reference is not finite in 64 of 64 elements"
//       more than 1%: NaN equals NaN, whatever went before
//   "output y of the reference is 0 in all 64 elements"
//       of 8 or more: a program that computes nothing of its inputs may be right
//
// One pass over the bytes.
std::string WhyUnchecked(const Argument& argument, std::span<const std::byte> want);

}  // namespace kiln::runner
