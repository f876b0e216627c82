#include "runner/changed_calls.h"

#include <algorithm>

namespace kiln::runner {
namespace {

// Time that the calls of a short program take together, and its longest call. A longer call is read
// to one percent by itself.
constexpr double kTogether_s = 0.5e-3;
constexpr double kLongestCall_s = 0.5e-3;
// A program that leaves out a part of the calls is found with the probability of that part, and
// the first call is never the one that is looked at.
constexpr int kFewestCalls = 4, kMostCalls = 16;
// Changing more takes longer than the calls, and a program with more data finds it in no cache, so
// that one call is read as well as many are.
constexpr int64_t kMostBytes = int64_t{64} << 20;

// Arguments of these bytes stay in the second-level cache whatever runs between the calls. Above
// them changes may drive out what a timed call still finds there.
constexpr int64_t kCachedBytes = int64_t{16} << 20;
constexpr double kRatioOfCached = 1.3, kRatioOfOthers = 2;

}  // namespace

std::optional<ChangedCalls> PlanChangedCalls(double call_s, double longest_s,
                                             const std::vector<Argument>& arguments,
                                             std::mt19937_64& random) {
  int64_t bytes = 0, all_bytes = 0;
  for (const Argument& argument : arguments) {
    all_bytes += argument.bytes;
    if (argument.role != v1::ArgSpec::WORKSPACE) bytes += argument.bytes;
  }
  if (call_s > kLongestCall_s || bytes > kMostBytes) return std::nullopt;
  const double many = kTogether_s / std::max({call_s, longest_s, 1e-6});
  ChangedCalls calls;
  calls.calls = static_cast<int>(std::clamp<double>(many, kFewestCalls, kMostCalls));
  calls.checked = std::uniform_int_distribution<int>(1, calls.calls - 1)(random);
  calls.seed = random();
  calls.most_ratio = all_bytes <= kCachedBytes ? kRatioOfCached : kRatioOfOthers;
  return calls;
}

std::vector<Change> ChangesOf(const Argument& argument, size_t index, const ChangedCalls& calls) {
  if (argument.role == v1::ArgSpec::WORKSPACE && argument.bytes > kMostBytes) return {};
  std::seed_seq seed{static_cast<uint32_t>(calls.seed), static_cast<uint32_t>(calls.seed >> 32),
                     static_cast<uint32_t>(index)};
  std::mt19937_64 random(seed);
  const uint64_t top_bit = uint64_t{1} << (8 * DTypeBytes(argument.dtype) - 1);
  const uint64_t flip = IsFloat(argument.dtype) ? top_bit : 1;
  const int all = 2 * calls.calls;
  std::vector<Change> changes;
  if (argument.role != v1::ArgSpec::INPUT) {
    // An output whose order changes may still be right, for instance if all elements are equal.
    for (int i = 0; i < all; ++i) {
      changes.push_back({.mask = random(), .flip = flip, .from = kNoPlaces, .to = kAllPlaces});
    }
    return changes;
  }
  // Values of a range of their own, and indices, would leave it.
  const bool flips = !argument.range.has_value() && argument.index_limit == 0;
  // The place of each element differs from its own one by the bits of `order`.
  uint64_t order = 0, flipped = kNoPlaces;
  for (int i = 0; i < all; ++i) {
    const bool is_own = i == calls.checked || i == all - 1;
    // Odd numbers move each element but a last one.
    const uint64_t next = is_own ? 0 : random() | 1;
    const uint64_t to = is_own || !flips ? kNoPlaces : random() >> 1 | 1;
    changes.push_back({.mask = order ^ next, .flip = flips ? flip : 0, .from = flipped, .to = to});
    order = next, flipped = to;
  }
  return changes;
}

}  // namespace kiln::runner
