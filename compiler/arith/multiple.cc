#include "compiler/arith/multiple.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace kiln::arith {
namespace {

int64_t MultipleOf(Simplifier& simplifier, ir::Expr e) {
  if (e->is_const_int()) return std::abs(e->int_value);
  switch (e->op) {
    case ir::Op::kMul:
      return std::max<int64_t>(
          1, MultipleOf(simplifier, e->arg(0)) * MultipleOf(simplifier, e->arg(1)) & 0xffff);
    case ir::Op::kFloorMod:
      return std::gcd(arith::MultipleOf(simplifier, simplifier.ToLinear(e->arg(0))),
                      MultipleOf(simplifier, e->arg(1)));
    default:
      return 1;
  }
}

}  // namespace

int64_t MultipleOf(Simplifier& simplifier, const Linear& e) {
  int64_t result = std::abs(e.constant);
  for (const Term& term : e.terms) {
    result = std::gcd(result,
                      std::abs(term.coefficient) % (1 << 20) * MultipleOf(simplifier, term.atom));
  }
  return result;
}

}  // namespace kiln::arith
