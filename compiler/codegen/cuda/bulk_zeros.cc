#include "compiler/codegen/cuda/bulk_zeros.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using arith::Linear;
using ir::Expr;
using ir::Op;

// fn(condition) for each part of a && b.
template <typename Fn>
void VisitParts(Expr condition, Fn&& fn) {
  if (condition->op != Op::kAnd) return fn(condition);
  for (Expr part : condition->args()) VisitParts(part, fn);
}

// Does the condition, condition < 0 or condition >= 0, hold where form < 0, or form >= 0?
// Conditions have been simplified: what all their terms are multiples of is divided by, and less
// than that left out.
bool Implies(const Linear& form, const Linear& condition, bool is_negative, CudaScope& scope) {
  if (condition.is_constant()) return (condition.constant < 0) == is_negative;
  int64_t common = condition.constant;
  for (const arith::Term& term : condition.terms) common = std::gcd(common, term.coefficient);
  const arith::Term& first = condition.terms[0];
  const int64_t divisor = form.Coefficient(first.atom) / (first.coefficient / common);
  if (divisor < 1) return false;
  // form - divisor * condition / common
  Linear rest = form;
  rest.constant -= divisor * (condition.constant / common);
  for (const arith::Term& term : condition.terms)
    rest.AddTerm(term.atom, -divisor * (term.coefficient / common));
  const arith::Interval range = scope.simplifier().RangeOf(rest);
  return is_negative ? range.lo >= 0 : range.hi < divisor;
}

}  // namespace

bool UsesVar(const Linear& form, int32_t var) {
  return std::ranges::any_of(form.terms,
                             [&](const arith::Term& term) { return ir::UsesVar(term.atom, var); });
}

// The array's inside fulfils all conditions. (And they keep whatever is read inside of it.)
Status CheckZeros(Expr value, std::span<const int64_t> shape, const std::vector<Linear>& places,
                  CudaScope& scope, CudaExprs& exprs) {
  std::string unknown;
  const auto check = [&](Expr part) {
    if (part->is_const_int() && part->int_value != 0) return;
    bool is_implied = false;
    if (part->op == Op::kLt || part->op == Op::kGe) {
      const bool is_negative = part->op == Op::kLt;
      const Linear difference =
          scope.simplifier().ToLinear(part->arg(0)) - scope.simplifier().ToLinear(part->arg(1));
      for (size_t d = 0; d < places.size(); ++d) {
        is_implied |= Implies(is_negative ? places[d] - arith::Constant(shape[d]) : places[d],
                              difference, is_negative, scope);
      }
    }
    if (!is_implied && unknown.empty()) unknown = exprs.PrintSimplified(part).text;
  };
  for (; value->op == Op::kIf || value->op == Op::kSelect; value = value->arg(1))
    VisitParts(exprs.SimplifyCondition(value->arg(0)), check);
  if (unknown.empty()) return OkStatus();
  return InvalidArgument(
      "zeros of its tiles are not those beyond the ends of an array, but where not {}", unknown);
}

}  // namespace kiln::codegen
