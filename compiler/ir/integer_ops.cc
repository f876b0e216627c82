#include "compiler/ir/integer_ops.h"

#include <algorithm>

namespace kiln::ir {
namespace {

// Returns the bits of a op b for operands of uint64. Returns nullopt if there is no value, and for
// the operators that give the same bits for signed numbers.
std::optional<int64_t> EvaluateUnsigned(Op op, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case Op::kFloorDiv:
      return ub == 0 ? std::nullopt : std::optional(static_cast<int64_t>(ua / ub));
    case Op::kFloorMod:
      return ub == 0 ? std::nullopt : std::optional(static_cast<int64_t>(ua % ub));
    case Op::kMin:
      return static_cast<int64_t>(std::min(ua, ub));
    case Op::kMax:
      return static_cast<int64_t>(std::max(ua, ub));
    case Op::kLt:
      return ua < ub;
    case Op::kLe:
      return ua <= ub;
    case Op::kGt:
      return ua > ub;
    case Op::kGe:
      return ua >= ub;
    case Op::kShr:
      return ub > 63 ? std::nullopt : std::optional(static_cast<int64_t>(ua >> ub));
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<int64_t> EvaluateBinary(Op op, Type type, int64_t a, int64_t b) {
  if (type == kUInt64) {
    if (const auto value = EvaluateUnsigned(op, a, b)) return value;
  }
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case Op::kAdd:
      return static_cast<int64_t>(ua + ub);
    case Op::kSub:
      return static_cast<int64_t>(ua - ub);
    case Op::kMul:
      return static_cast<int64_t>(ua * ub);
    case Op::kFloorDiv:
      return b == 0 ? std::nullopt : std::optional(FloorDiv(a, b));
    case Op::kFloorMod:
      return b == 0 ? std::nullopt : std::optional(FloorMod(a, b));
    case Op::kMin:
      return std::min(a, b);
    case Op::kMax:
      return std::max(a, b);
    case Op::kEq:
      return a == b;
    case Op::kNe:
      return a != b;
    case Op::kLt:
      return a < b;
    case Op::kLe:
      return a <= b;
    case Op::kGt:
      return a > b;
    case Op::kGe:
      return a >= b;
    case Op::kAnd:
      return a != 0 && b != 0;
    case Op::kOr:
      return a != 0 || b != 0;
    case Op::kBitAnd:
      return a & b;
    case Op::kBitOr:
      return a | b;
    case Op::kBitXor:
      return a ^ b;
    case Op::kShl:
      return b < 0 || b > 63 ? std::nullopt : std::optional(static_cast<int64_t>(ua << b));
    case Op::kShr:
      return b < 0 || b > 63 ? std::nullopt : std::optional(a >> b);
    default:
      return std::nullopt;
  }
}

}  // namespace kiln::ir
