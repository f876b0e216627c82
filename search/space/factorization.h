// Ordered factorizations of an extent, for tile sizes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"

namespace kiln::search {

// All ways to choose lengths l1..ln, each a divisor of what remains of `extent` (the quotient that
// is left is the outermost tile), with ln <= max_innermost. Facts §3.5: (512, 4) gives 700 with
// max_innermost 64.
std::vector<std::vector<int64_t>> Factorizations(int64_t extent, int n, int64_t max_innermost);

// Their number, without making them.
int64_t CountFactorizations(int64_t extent, int n, int64_t max_innermost);

// A uniformly random one of them, without making them all.
std::vector<int64_t> RandomFactorization(int64_t extent, int n, int64_t max_innermost, Rng& rng);

// Ascending.
std::vector<int64_t> Divisors(int64_t n);

}  // namespace kiln::search
