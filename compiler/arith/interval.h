// Intervals of integers, for the values that index expressions can take.
//
// There is one rule for large values: an end is a number below 2^60 in size, or it is unbounded. A
// result that does not fit is rounded outwards: the upper end of 2^59 + 2^59 is unbounded, the
// lower end is 2^60 - 1. Adding to an unbounded end, scaling it or dividing it never makes it
// bounded. So an interval always contains all the values. Sums and differences of the ends of two
// bounded intervals, or of an end and an extent, stay far from the limits of int64_t.
//
// An interval with lo > hi is empty: no value is possible. An operation gives an interval that
// contains the result for each pair of values inside its operands. For an empty operand it gives
// any interval.
//
// Values, any thread. Cost: about a nanosecond, divisions some ten.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "compiler/ir/expr.h"

namespace kiln::arith {

// Limit of the size of a bounded end.
inline constexpr int64_t kEndLimit = int64_t{1} << 60;
// Stands for an unbounded end. A sum of two of them fits into int64_t. A sum of one of them and a
// bounded end is still at or beyond kEndLimit.
inline constexpr int64_t kUnbounded = int64_t{1} << 61;

struct Interval {
  // Both ends belong to the interval.
  int64_t lo = -kUnbounded;
  int64_t hi = kUnbounded;

  // Returns the interval with these ends, rounded outwards.
  static constexpr Interval Of(int64_t lo, int64_t hi) { return {RoundDown(lo), RoundUp(hi)}; }
  static constexpr Interval Of(int64_t value) { return Of(value, value); }

  constexpr bool bounded() const { return lo > -kUnbounded && hi < kUnbounded; }
  constexpr bool empty() const { return lo > hi; }
  constexpr bool Contains(int64_t value) const { return Contains(Of(value)); }
  constexpr bool Contains(Interval other) const { return lo <= other.lo && other.hi <= hi; }
  bool operator==(const Interval&) const = default;

  static constexpr int64_t RoundDown(int64_t end) {
    return end <= -kEndLimit ? -kUnbounded : std::min(end, kEndLimit - 1);
  }
  static constexpr int64_t RoundUp(int64_t end) {
    return end >= kEndLimit ? kUnbounded : std::max(end, 1 - kEndLimit);
  }
};

inline constexpr Interval kEverything{};
inline constexpr Interval kNothing{kUnbounded, -kUnbounded};

constexpr Interval operator+(Interval a, Interval b) {
  return Interval::Of(a.lo + b.lo, a.hi + b.hi);
}
constexpr Interval operator-(Interval a) { return {-a.hi, -a.lo}; }
constexpr Interval operator-(Interval a, Interval b) { return a + -b; }
constexpr Interval operator*(Interval a, int64_t factor);
Interval operator*(Interval a, Interval b);

// FloorDiv and FloorMod return the interval of all numbers if the divisor can be 0.
Interval FloorDiv(Interval a, Interval b);
Interval FloorMod(Interval a, Interval b);
// Returns the interval of a op b for all pairs of values. `op` is ir::Op::kBitAnd to kShr. Shifts
// by a negative count have no value.
Interval Bits(ir::Op op, Interval a, Interval b);
// Returns x // divisor if the quotient is the same for all x in the interval. divisor > 0.
std::optional<int64_t> CommonQuotient(Interval a, int64_t divisor);
// Returns the interval of all x for which factor * x lies in `a`. factor != 0.
Interval Divisible(Interval a, int64_t factor);

constexpr Interval Min(Interval a, Interval b) {
  return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
}
constexpr Interval Max(Interval a, Interval b) {
  return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
}
// Returns the smallest interval that contains both.
constexpr Interval Hull(Interval a, Interval b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}
constexpr Interval Intersect(Interval a, Interval b) {
  return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
}

// Returns the values of a type: 0 and 1 for bool, and all numbers for int64 and floats. The values
// of a uint64 have no upper bound, since a number of 2^63 or more does not fit in an int64.
inline Interval RangeOfType(ir::Type type);
// Returns the range of a value that is computed exactly, in the interval `exact`, and then wraps
// around to the type if it does not fit.
inline Interval WrappedTo(ir::Type type, Interval exact);

// Returns the interval of all a - b for which the comparison of a with b is true. For != this is
// the interval of all numbers, because only one value is excluded.
Interval DifferenceWhere(ir::Op comparison);
// Returns the result of the comparison if it is the same for each a - b in the interval.
std::optional<bool> Decide(ir::Op comparison, Interval difference);

// ---- implementation of inline functions

namespace internal {
// Multiplies two ends. The caller rounds the product. A product that overflows is unbounded, and so
// is any multiple of an unbounded end except by 0.
constexpr int64_t MultiplyEnds(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return (a < 0) == (b < 0) ? kUnbounded : -kUnbounded;
  return product;
}
}  // namespace internal

constexpr Interval operator*(Interval a, int64_t factor) {
  const int64_t x = internal::MultiplyEnds(a.lo, factor), y = internal::MultiplyEnds(a.hi, factor);
  return factor < 0 ? Interval::Of(y, x) : Interval::Of(x, y);
}

inline Interval RangeOfType(ir::Type type) {
  if (type.is_bool()) return {0, 1};
  if (type == ir::kUInt64) return {0, kUnbounded};
  if (!type.is_int() || type.bits > 60) return kEverything;
  if (type.is_unsigned()) return {0, (int64_t{1} << type.bits) - 1};
  const int64_t half = int64_t{1} << (type.bits - 1);
  return {-half, half - 1};
}

inline Interval WrappedTo(ir::Type type, Interval exact) {
  const Interval values = RangeOfType(type);
  // The value may wrap around.
  if (type == ir::kUInt64 && exact.hi >= kUnbounded) return values;
  return values.Contains(exact) ? exact : values;
}

}  // namespace kiln::arith
