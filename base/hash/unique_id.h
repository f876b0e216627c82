// Random names, in lower-case hex.
#pragma once

#include <string>

#include "base/numbers/rng.h"

namespace kiln {

// Returns an id from the kernel's random numbers. Ids of 16 digits do not collide among millions.
std::string UniqueId(int hex_digits = 16);

// Returns an id from an Rng: the same seed gives the same ids. For tests and reproducible runs.
std::string UniqueId(Rng& rng, int hex_digits = 16);

}  // namespace kiln
