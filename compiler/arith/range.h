// The range of a node of an expression, from the ranges of its operands. An analysis handles the
// leaves (variables, loads) and the conditions that it knows, and leaves the other nodes to
// RangeOfNode:
//
//   Interval RangeOf(Expr e) {
//     if (e->op == Op::kVar) return ranges_[e->id];
//     return RangeOfNode(e, [&](Expr operand) { return RangeOf(operand); });
//   }
//
// A value computed in a type narrower than int64 wraps around if it does not fit; its range is then
// that of the type. Index arithmetic in int64 is exact (compiler/ir/expr.h).
#pragma once

#include <span>

#include "compiler/arith/interval.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/expr.h"

namespace kiln::arith {

template <typename RangeOfOperand>
Interval RangeOfNode(ir::Expr e, RangeOfOperand&& operand);

// Returns the range of the form, given those of its atoms.
template <typename RangeOfAtom>
Interval RangeOfLinear(const Linear& form, RangeOfAtom&& atom);

// vars[i] is the range of variable i. Variables past the end, and loads, have the range of their
// type.
Interval RangeOf(ir::Expr e, std::span<const Interval> vars);
Interval RangeOf(const Linear& form, std::span<const Interval> vars);

// ---- implementation of templates

template <typename RangeOfOperand>
Interval RangeOfNode(ir::Expr e, RangeOfOperand&& operand) {
  using ir::Op;
  const auto of_constant = [](ir::Expr c) {
    const bool is_int64 = c->type != ir::kUInt64 || c->int_value >= 0;
    return is_int64 ? Interval::Of(c->int_value) : RangeOfType(c->type);
  };
  const auto of = [&](int i) -> Interval {
    const ir::Expr arg = e->arg(i);
    return arg->is_const_int() ? of_constant(arg) : operand(arg);
  };
  if (e->is_const_int()) return of_constant(e);
  if (!e->type.is_int()) return RangeOfType(e->type);
  switch (e->op) {
    case Op::kAdd:
      return WrappedTo(e->type, of(0) + of(1));
    case Op::kSub:
      return WrappedTo(e->type, of(0) - of(1));
    case Op::kMul:
      return WrappedTo(e->type, of(0) * of(1));
    case Op::kFloorDiv:
      return WrappedTo(e->type, FloorDiv(of(0), of(1)));
    case Op::kFloorMod:
      return WrappedTo(e->type, FloorMod(of(0), of(1)));
    case Op::kBitAnd:
    case Op::kBitOr:
    case Op::kBitXor:
    case Op::kShl:
    case Op::kShr:
      if (e->type == ir::kUInt64 && e->op != Op::kBitAnd) return RangeOfType(e->type);
      return WrappedTo(e->type, Bits(e->op, of(0), of(1)));
    case Op::kMin:
      return Min(of(0), of(1));
    case Op::kMax:
      return Max(of(0), of(1));
    case Op::kSelect:
    case Op::kIf:
      return Hull(of(1), of(2));
    case Op::kCast:
      if (e->arg(0)->type.is_float()) return RangeOfType(e->type);
      if (e->arg(0)->type == ir::kUInt64 && of(0).hi >= kUnbounded) return RangeOfType(e->type);
      return WrappedTo(e->type, of(0));
    default:
      return RangeOfType(e->type);
  }
}

template <typename RangeOfAtom>
Interval RangeOfLinear(const Linear& form, RangeOfAtom&& atom) {
  if (form.overflow) return kEverything;
  Interval sum = Interval::Of(form.constant);
  for (const Term& term : form.terms) sum = sum + atom(term.atom) * term.coefficient;
  return sum;
}

}  // namespace kiln::arith
