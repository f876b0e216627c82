#include "compiler/arith/interval.h"

#include <bit>

#include "compiler/ir/integer_ops.h"

namespace kiln::arith {
namespace {
using ir::Op;

// b != 0. An unbounded divisor stands for all divisors that are larger than any number. The
// quotient is then 0 or -1.
int64_t DivideEnds(int64_t a, int64_t b) {
  if (a >= kEndLimit || a <= -kEndLimit) return (a < 0) == (b < 0) ? kUnbounded : -kUnbounded;
  return ir::FloorDiv(a, b);
}

template <typename Corner>
Interval HullOfCorners(Interval a, Interval b, Corner corner) {
  const auto [lo, hi] =
      std::minmax({corner(a.lo, b.lo), corner(a.lo, b.hi), corner(a.hi, b.lo), corner(a.hi, b.hi)});
  return Interval::Of(lo, hi);
}

}  // namespace

Interval operator*(Interval a, Interval b) {
  if (b.lo == b.hi) return a * b.lo;
  return HullOfCorners(a, b, internal::MultiplyEnds);
}

Interval FloorDiv(Interval a, Interval b) {
  if (b.lo <= 0 && b.hi >= 0) return kEverything;
  if (b.lo == b.hi && b.lo > 0) return Interval::Of(DivideEnds(a.lo, b.lo), DivideEnds(a.hi, b.lo));
  return HullOfCorners(a, b, DivideEnds);
}

Interval FloorMod(Interval a, Interval b) {
  if (b.lo <= 0 && b.hi >= 0) return kEverything;
  // x % y = -(-x % -y)
  if (b.hi < 0) return -FloorMod(-a, -b);
  if (b.lo == b.hi) {
    if (const auto q = CommonQuotient(a, b.lo)) return {a.lo - *q * b.lo, a.hi - *q * b.lo};
  }
  return Interval::Of(0, a.lo >= 0 ? std::min(a.hi, b.hi - 1) : b.hi - 1);
}

Interval Bits(Op op, Interval a, Interval b) {
  const bool positive = a.lo >= 0 && b.lo >= 0;
  switch (op) {
    case Op::kBitAnd:
      if (positive) return {0, std::min(a.hi, b.hi)};
      if (a.lo >= 0) return {0, a.hi};
      return b.lo >= 0 ? Interval{0, b.hi} : kEverything;
    case Op::kBitOr:
    case Op::kBitXor: {
      const int64_t largest = std::max(a.hi, b.hi);
      if (!positive || largest >= kEndLimit) return kEverything;
      const auto bits = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(largest) + 1));
      return Interval::Of(op == Op::kBitOr ? std::max(a.lo, b.lo) : 0, bits - 1);
    }
    default:
      break;
  }
  if (b.lo != b.hi || b.lo < 0 || b.lo > 59) {
    return op == Op::kShr && positive ? Interval{0, a.hi} : kEverything;
  }
  const int64_t factor = int64_t{1} << b.lo;
  return op == Op::kShl ? a * factor : FloorDiv(a, Interval::Of(factor));
}

std::optional<int64_t> CommonQuotient(Interval a, int64_t divisor) {
  if (!a.bounded()) return std::nullopt;
  const int64_t quotient = ir::FloorDiv(a.lo, divisor);
  if (quotient != ir::FloorDiv(a.hi, divisor)) return std::nullopt;
  return quotient;
}

Interval Divisible(Interval a, int64_t factor) {
  Interval size = Interval::Of(factor);
  if (factor < 0) {
    a = -a;
    size = -size;
  }
  // Computes ceil(lo / size) .. floor(hi / size).
  return {-FloorDiv(Interval{-a.lo, -a.lo}, size).hi, FloorDiv(Interval{a.hi, a.hi}, size).hi};
}

Interval DifferenceWhere(Op comparison) {
  switch (comparison) {
    case Op::kEq:
      return {0, 0};
    case Op::kLt:
      return {-kUnbounded, -1};
    case Op::kLe:
      return {-kUnbounded, 0};
    case Op::kGt:
      return {1, kUnbounded};
    case Op::kGe:
      return {0, kUnbounded};
    default:
      return kEverything;
  }
}

std::optional<bool> Decide(Op comparison, Interval difference) {
  if (comparison == Op::kNe) {
    const auto equal = Decide(Op::kEq, difference);
    return equal ? std::optional<bool>(!*equal) : std::nullopt;
  }
  const Interval where = DifferenceWhere(comparison);
  if (where.Contains(difference)) return true;
  if (Intersect(where, difference).empty()) return false;
  return std::nullopt;
}

}  // namespace kiln::arith
