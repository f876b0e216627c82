// Integer arithmetic that the language does not have: rounding up, products that may not fit.
//
// A product of counts (extents, trips, bytes) that does not fit in int64_t is INT64_MAX. So a limit
// that it is compared with refuses it, and no product ever wraps around to a small number.
//
// Pure functions, any thread. Cost: about a nanosecond a number.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace kiln {

// The least integer that is not below a / b. b > 0; no a overflows.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

// The least multiple that is not below the value. multiple > 0; the result must fit.
constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return CeilDiv(value, multiple) * multiple;
}

// Nothing if the product does not fit.
constexpr std::optional<int64_t> CheckedMul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The product of two counts (not negative); INT64_MAX if it does not fit.
constexpr int64_t MultiplyCounts(int64_t a, int64_t b) {
  return CheckedMul(a, b).value_or(INT64_MAX);
}

// The product of counts; 1 of none. INT64_MAX if the product of the first ones does not fit, even
// where a 0 follows.
constexpr int64_t ProductOfCounts(std::span<const int64_t> counts) {
  int64_t product = 1;
  for (int64_t count : counts) product = MultiplyCounts(product, count);
  return product;
}

}  // namespace kiln
