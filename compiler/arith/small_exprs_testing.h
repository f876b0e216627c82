// All small expressions, all values of their variables, and an evaluator as obvious as can be, for
// tests that compare with brute force.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/integer_ops.h"
#include "compiler/ir/scalar.h"

namespace kiln::arith {

// Returns the value of an expression without loads. vars[i] is the value of variable i.
inline int64_t Eval(ir::Expr e, std::span<const int64_t> vars) {
  using ir::Op;
  const auto arg = [&](int i) { return Eval(e->arg(i), vars); };
  switch (e->op) {
    case Op::kInt:
      return e->int_value;
    case Op::kVar:
      return vars[static_cast<size_t>(e->id)];
    case Op::kAdd:
      return ir::WrapToType(arg(0) + arg(1), e->type);
    case Op::kSub:
      return ir::WrapToType(arg(0) - arg(1), e->type);
    case Op::kMul:
      return ir::WrapToType(arg(0) * arg(1), e->type);
    case Op::kCast:
      return ir::WrapToType(arg(0), e->type);
    case Op::kFloorDiv:
      return ir::WrapToType(ir::FloorDiv(arg(0), arg(1)), e->type);
    case Op::kFloorMod:
      return ir::FloorMod(arg(0), arg(1));
    case Op::kBitAnd:
      return arg(0) & arg(1);
    case Op::kBitOr:
      return arg(0) | arg(1);
    case Op::kBitXor:
      return arg(0) ^ arg(1);
    case Op::kShl:
      return ir::WrapToType(arg(0) << arg(1), e->type);
    case Op::kShr:
      return arg(0) >> arg(1);
    case Op::kMin:
      return std::min(arg(0), arg(1));
    case Op::kMax:
      return std::max(arg(0), arg(1));
    case Op::kLt:
      return arg(0) < arg(1);
    case Op::kLe:
      return arg(0) <= arg(1);
    case Op::kGt:
      return arg(0) > arg(1);
    case Op::kGe:
      return arg(0) >= arg(1);
    case Op::kEq:
      return arg(0) == arg(1);
    case Op::kNe:
      return arg(0) != arg(1);
    case Op::kAnd:
      return arg(0) && arg(1);
    case Op::kOr:
      return arg(0) || arg(1);
    case Op::kNot:
      return !arg(0);
    case Op::kSelect:
    case Op::kIf:
      return arg(0) ? arg(1) : arg(2);
    default:
      ADD_FAILURE() << "op " << static_cast<int>(e->op);
      return 0;
  }
}

// Both ends belong to the range.
struct VarRange {
  int64_t lo, hi;
};

// Calls visit(values) for all values of the variables.
template <typename Visitor>
void ForAllValues(std::span<const VarRange> ranges, Visitor&& visit) {
  std::vector<int64_t> values;
  for (const VarRange& range : ranges) values.push_back(range.lo);
  while (true) {
    visit(std::span<const int64_t>(values));
    size_t i = 0;
    while (i < ranges.size() && ++values[i] > ranges[i].hi) {
      values[i] = ranges[i].lo;
      ++i;
    }
    if (i == ranges.size()) return;
  }
}

// Returns all index expressions of a height up to `height` over the variables 0 .. num_vars-1 and
// some constants, each once: sums, differences, products, minima and maxima of any two lower
// expressions, and quotients and remainders by constants of both signs.
inline std::vector<ir::Expr> SmallExprs(ir::ExprPool& pool, int num_vars, int height) {
  static constexpr ir::Op kOps[] = {ir::Op::kAdd, ir::Op::kSub, ir::Op::kMul, ir::Op::kMin,
                                    ir::Op::kMax};
  std::vector<ir::Expr> all;
  std::unordered_set<ir::Expr> seen;
  const auto add = [&](ir::Expr e) {
    if (seen.insert(e).second) all.push_back(e);
  };
  for (int v = 0; v < num_vars; ++v) add(pool.Var(v));
  for (int64_t value : {-2, 1, 3}) add(pool.Int(value));
  for (int h = 1; h <= height; ++h) {
    const std::vector<ir::Expr> lower = all;
    for (ir::Expr a : lower) {
      for (int64_t divisor : {-3, -2, 2, 3, 4}) {
        add(pool.FloorDiv(a, pool.Int(divisor)));
        add(pool.FloorMod(a, pool.Int(divisor)));
      }
      for (ir::Expr b : lower) {
        for (ir::Op op : kOps) add(pool.Binary(op, a, b));
      }
    }
  }
  return all;
}

}  // namespace kiln::arith
