#include "search/space/factorization.h"

#include <algorithm>

namespace kiln::search {
namespace {

void Enumerate(int64_t rest, int n, int64_t max_innermost, std::vector<int64_t>& prefix,
               std::vector<std::vector<int64_t>>& out) {
  if (n == 0) {
    out.push_back(prefix);
    return;
  }
  for (int64_t d : Divisors(rest)) {
    if (n == 1 && d > max_innermost) break;
    prefix.push_back(d);
    Enumerate(rest / d, n - 1, max_innermost, prefix, out);
    prefix.pop_back();
  }
}

}  // namespace

std::vector<int64_t> Divisors(int64_t n) {
  std::vector<int64_t> low, high;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

std::vector<std::vector<int64_t>> Factorizations(int64_t extent, int n, int64_t max_innermost) {
  std::vector<std::vector<int64_t>> out;
  std::vector<int64_t> prefix;
  Enumerate(extent, n, max_innermost, prefix, out);
  return out;
}

int64_t CountFactorizations(int64_t extent, int n, int64_t max_innermost) {
  return RandomFactorizations(extent, n, max_innermost).count();
}

std::vector<int64_t> RandomFactorization(int64_t extent, int n, int64_t max_innermost, Rng& rng) {
  return RandomFactorizations(extent, n, max_innermost).Draw(rng);
}

RandomFactorizations::RandomFactorizations(int64_t extent, int n, int64_t max_innermost)
    : extent_(extent),
      max_innermost_(max_innermost),
      n_(n),
      divisors_(Divisors(extent)),
      counts_(divisors_.size() * static_cast<size_t>(n + 1), -1) {
  count_ = FillCounts(extent, n);
}

size_t RandomFactorizations::RowOf(int64_t rest) const {
  return static_cast<size_t>(std::ranges::lower_bound(divisors_, rest) - divisors_.begin());
}

int64_t RandomFactorizations::CountOf(int64_t rest, int left) const {
  if (left == 0) return 1;
  return counts_[RowOf(rest) * static_cast<size_t>(n_ + 1) + static_cast<size_t>(left)];
}

int64_t RandomFactorizations::FillCounts(int64_t rest, int left) {
  if (left == 0) return 1;
  int64_t& known = counts_[RowOf(rest) * static_cast<size_t>(n_ + 1) + static_cast<size_t>(left)];
  if (known >= 0) return known;
  int64_t sum = 0;
  for (const int64_t d : divisors_) {
    if (d > rest || (left == 1 && d > max_innermost_)) break;
    if (rest % d == 0) sum += FillCounts(rest / d, left - 1);
  }
  return known = sum;
}

std::vector<int64_t> RandomFactorizations::Draw(Rng& rng) const {
  std::vector<int64_t> lengths;
  lengths.reserve(static_cast<size_t>(n_));
  int64_t rest = extent_;
  for (int left = n_; left > 0; --left) {
    int64_t pick = UniformInt(rng, CountOf(rest, left));
    for (const int64_t d : divisors_) {
      if (rest % d != 0 || (left == 1 && d > max_innermost_)) continue;
      const int64_t below = CountOf(rest / d, left - 1);
      if (pick < below) {
        lengths.push_back(d);
        rest /= d;
        break;
      }
      pick -= below;
    }
  }
  return lengths;
}

}  // namespace kiln::search
