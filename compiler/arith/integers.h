// Integer arithmetic that the language does not have: rounding up, products that may not fit.
// Floor division and modulo stand in compiler/ir/expr.h, beside the operators that they define.
//
// Pure functions, any thread. Cost: about a nanosecond a number.
#pragma once

#include <cstdint>
#include <optional>

namespace kiln::arith {

// The least integer that is not below a / b. b > 0; no a overflows.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

// Nothing if the product does not fit.
constexpr std::optional<int64_t> CheckedMul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

}  // namespace kiln::arith
