// Ordered factorizations of an extent, for tile sizes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/numbers/rng.h"

namespace kiln::search {

// All ways to choose lengths l1..ln, each a divisor of what remains of `extent` (the quotient that
// is left is the outermost tile), with ln <= max_innermost. Facts §3.5: (512, 4) gives 700 with
// max_innermost 64.
std::vector<std::vector<int64_t>> Factorizations(int64_t extent, int n, int64_t max_innermost);

// Their number, without making them.
int64_t CountFactorizations(int64_t extent, int n, int64_t max_innermost);

// A uniformly random one of them, without making them all.
std::vector<int64_t> RandomFactorization(int64_t extent, int n, int64_t max_innermost, Rng& rng);

// The factorizations of one extent, counted once, for many draws from them.
class RandomFactorizations {
 public:
  RandomFactorizations(int64_t extent, int n, int64_t max_innermost);

  int64_t count() const { return count_; }
  // As RandomFactorization draws.
  std::vector<int64_t> Draw(Rng& rng) const;

 private:
  size_t RowOf(int64_t rest) const;
  // Of a remaining extent into so many remaining lengths.
  int64_t CountOf(int64_t rest, int left) const;
  int64_t FillCounts(int64_t rest, int left);

  int64_t extent_, max_innermost_;
  int n_;
  std::vector<int64_t> divisors_;
  std::vector<int64_t> counts_;  // n+1 for each divisor: any remaining extent is one; -1: not asked
  int64_t count_ = 0;
};

// Ascending.
std::vector<int64_t> Divisors(int64_t n);

}  // namespace kiln::search
