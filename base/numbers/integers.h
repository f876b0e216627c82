// Integer arithmetic that the language does not have: rounding up, and products that may not fit.
//
// A product of counts (extents, trips, bytes) that does not fit in int64_t is INT64_MAX. A limit
// that the product is compared with then refuses it, and no product ever wraps around to a small
// number.
//
// Pure functions, any thread. Cost: about a nanosecond for each number.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace kiln {

// Returns the least integer that is not below a / b. b > 0. No value of a overflows.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

// Returns the least multiple that is not below the value. multiple > 0; the result must fit.
constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return CeilDiv(value, multiple) * multiple;
}

// Returns the product, or nothing if it does not fit.
constexpr std::optional<int64_t> CheckedMul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Returns the product of two counts (not negative), or INT64_MAX if it does not fit.
constexpr int64_t MultiplyCounts(int64_t a, int64_t b) {
  return CheckedMul(a, b).value_or(INT64_MAX);
}

// Returns the product of counts, or 1 for no counts. It is INT64_MAX if the product of the first
// counts does not fit, even if a 0 follows.
constexpr int64_t ProductOfCounts(std::span<const int64_t> counts) {
  int64_t product = 1;
  for (int64_t count : counts) product = MultiplyCounts(product, count);
  return product;
}

}  // namespace kiln
