// Random numbers that are the same on every platform and library. The standard fixes
// std::mt19937_64 but not the std:: distributions, so the small functions here replace the
// distributions. An Rng belongs to one thread. Parallel work gives each item SplitSeed(seed, item).
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"

namespace kiln {

using Rng = std::mt19937_64;

// Returns a number in [0, n). n > 0. The bias (below n / 2^64) does not matter to a search.
inline int64_t UniformInt(Rng& rng, int64_t n) {
  KILN_CHECK(n > 0, "UniformInt over {} values", n);
  return static_cast<int64_t>(rng() % static_cast<uint64_t>(n));
}

// Returns a number in [low, high], both included.
inline int64_t UniformIn(Rng& rng, int64_t low, int64_t high) {
  return low + UniformInt(rng, high - low + 1);
}

// Returns a number in [0, 1), with 53 random bits.
inline double UniformReal(Rng& rng) { return static_cast<double>(rng() >> 11) * 0x1.0p-53; }

// Returns true with this probability.
inline bool Chance(Rng& rng, double probability) { return UniformReal(rng) < probability; }

template <typename T>
void Shuffle(Rng& rng, std::vector<T>& items) {
  for (size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[UniformInt(rng, static_cast<int64_t>(i))]);
  }
}

// Returns one of `items`, which must not be empty.
template <typename Container>
const auto& PickFrom(Rng& rng, const Container& items) {
  return items[UniformInt(rng, static_cast<int64_t>(items.size()))];
}

// Returns an index with probability proportional to its weight. Weights are >= 0 and not all 0.
inline int64_t PickWeighted(Rng& rng, std::span<const double> weights) {
  double total = 0;
  for (double w : weights) total += w;
  KILN_CHECK(total > 0, "{} weights, their sum {}", weights.size(), total);
  double left = UniformReal(rng) * total;
  int64_t last_positive = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    last_positive = static_cast<int64_t>(i);
    if (left < weights[i]) return last_positive;
    left -= weights[i];
  }
  // Rounding took the rest.
  return last_positive;
}

// Mixes bits by the finalizer of splitmix64: neighbouring inputs give unrelated outputs.
inline uint64_t MixBits(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Returns the seed of stream number `stream` under `seed`.
inline uint64_t SplitSeed(uint64_t seed, uint64_t stream) {
  return MixBits(MixBits(seed) ^ (stream * 0xd1342543de82ef95 + 1));
}

}  // namespace kiln
