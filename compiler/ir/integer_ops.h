// Results of the operators of expressions on integers, for folding, simplification and the
// evaluator.
//
// Pure functions, any thread. Cost: about a nanosecond.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/ir/expr.h"

namespace kiln::ir {

// Returns the quotient, rounded towards minus infinity. b != 0. The quotient of the lowest int64
// and -1 wraps around; the processor would trap.
constexpr int64_t FloorDiv(int64_t a, int64_t b) {
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  const int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

// Returns a - b*FloorDiv(a, b), which has the sign of b. b != 0.
constexpr int64_t FloorMod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t r = a % b;
  return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
}

// Returns a op b for binary operators on operands of `type`; sums, products and shifts wrap around
// at 64 bits. Returns nullopt if there is no value: for a division by 0, a shift by less than 0 or
// more than 63, and kDiv, which is for floats.
std::optional<int64_t> EvaluateBinary(Op op, Type type, int64_t a, int64_t b);

}  // namespace kiln::ir
