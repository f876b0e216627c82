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

// Counts by (remaining extent, remaining lengths); the remaining extent is always one of few
// divisors.
class Counter {
 public:
  Counter(int64_t extent, int n, int64_t max_innermost)
      : divisors_(Divisors(extent)), max_innermost_(max_innermost) {
    table_.assign(divisors_.size() * (n + 1), -1);
  }

  int64_t Count(int64_t rest, int n) {
    if (n == 0) return 1;
    const size_t row =
        std::lower_bound(divisors_.begin(), divisors_.end(), rest) - divisors_.begin();
    int64_t& known = table_[row + divisors_.size() * n];
    if (known >= 0) return known;
    int64_t sum = 0;
    for (int64_t d : divisors_) {
      if (d > rest || (n == 1 && d > max_innermost_)) break;
      if (rest % d == 0) sum += Count(rest / d, n - 1);
    }
    return known = sum;
  }

  const std::vector<int64_t>& divisors() const { return divisors_; }

 private:
  std::vector<int64_t> divisors_;
  int64_t max_innermost_;
  std::vector<int64_t> table_;
};

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
  return Counter(extent, n, max_innermost).Count(extent, n);
}

std::vector<int64_t> RandomFactorization(int64_t extent, int n, int64_t max_innermost, Rng& rng) {
  Counter counter(extent, n, max_innermost);
  std::vector<int64_t> lengths;
  int64_t rest = extent;
  for (int left = n; left > 0; --left) {
    int64_t pick = UniformInt(rng, counter.Count(rest, left));
    for (int64_t d : counter.divisors()) {
      if (rest % d != 0 || (left == 1 && d > max_innermost)) continue;
      const int64_t below = counter.Count(rest / d, left - 1);
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
