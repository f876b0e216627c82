#include "compiler/arith/range.h"

namespace kiln::arith {

Interval RangeOf(ir::Expr e, std::span<const Interval> vars) {
  if (e->op == ir::Op::kVar && static_cast<size_t>(e->id) < vars.size())
    return vars[static_cast<size_t>(e->id)];
  return RangeOfNode(e, [&](ir::Expr operand) { return RangeOf(operand, vars); });
}

Interval RangeOf(const Linear& form, std::span<const Interval> vars) {
  return RangeOfLinear(form, [&](ir::Expr atom) { return RangeOf(atom, vars); });
}

}  // namespace kiln::arith
