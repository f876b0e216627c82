// Finds outputs that cannot tell a right program from a wrong one.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runner/arguments.h"

namespace kiln::runner {

// Returns the reason why comparing with an output of a reference proves little; empty: it proves
// enough.
//
//   "output y of the reference is not finite in 64 of 64 elements"
//       if more than 1% are so: NaN equals NaN, whatever the program computed before
//   "output y of the reference is 0 in all 64 elements"
//       if there are 8 or more: a program that uses none of its inputs may be right
//
// The cost is one pass over the bytes.
std::string WhyUnchecked(const Argument& argument, std::span<const std::byte> want);

}  // namespace kiln::runner
