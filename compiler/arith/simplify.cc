#include "compiler/arith/simplify.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/numbers/integers.h"
#include "compiler/arith/range.h"
#include "compiler/ir/integer_ops.h"

namespace kiln::arith {
namespace {
using ir::Expr;
using ir::Op;

// Negates modulo 2^64, as forms that overflow do.
int64_t Negative(int64_t value) { return static_cast<int64_t>(-static_cast<uint64_t>(value)); }

// sum = g*high + low. g divides the coefficients of high, and the constant of low lies in 0 .. g-1.
struct Quotient {
  Linear high, low;
};

Quotient SplitByFactor(const Linear& sum, int64_t g) {
  Quotient quotient{Constant(sum.constant / g), Constant(sum.constant % g)};
  for (const Term& t : sum.terms) {
    if (t.coefficient % g == 0) {
      quotient.high.terms.push_back({t.atom, t.coefficient / g});
    } else {
      quotient.low.terms.push_back(t);
    }
  }
  return quotient;
}

}  // namespace

int32_t Simplifier::AddVar(int64_t extent) {
  ranges_.push_back({0, Interval::RoundUp(extent - 1)});
  return num_vars() - 1;
}

Linear Simplifier::Var(int32_t id) {
  if (ranges_[id].lo == ranges_[id].hi) return Constant(ranges_[id].lo);
  return Atom(pool_.Var(id));
}

Linear Simplifier::Atom(Expr e) const {
  Linear out;
  if (e->is_const_int()) {
    out.constant = e->int_value;
  } else {
    out.terms.push_back({e, 1});
  }
  return out;
}

Linear Simplifier::IndexAtom(Expr e) { return Atom(pool_.Cast(ir::kIndex, e)); }

void Simplifier::Assume(Expr condition) {
  if (condition->op == Op::kAnd) {
    Assume(condition->arg(0));
    return Assume(condition->arg(1));
  }
  if (!ir::IsComparison(condition->op) || condition->op == Op::kNe ||
      condition->arg(0)->type != ir::kIndex)
    return;
  Fact fact = FactOf(condition->op, ToLinear(condition->arg(0)) - ToLinear(condition->arg(1)));
  if (fact.sum.is_constant() || fact.sum.overflow) return;
  fact.range = Intersect(fact.range, RangeOf(fact.sum));
  // The condition never holds.
  if (fact.range.empty()) return;
  fact.expr = ToExpr(fact.sum);
  facts_.Add(std::move(fact));
}

Interval Simplifier::RangeOf(const Linear& e) const {
  const Interval range = RangeByTerms(e);
  if (facts_.empty()) return range;
  return facts_.Narrow(e, range, [this](const Linear& rest) { return RangeByTerms(rest); });
}

Interval Simplifier::RangeByTerms(const Linear& e) const {
  return RangeOfLinear(e, [this](Expr atom) { return RangeOf(atom); });
}

Interval Simplifier::RangeOf(Expr e) const {
  const auto operand = [this](Expr arg) { return RangeOf(arg); };
  if (e->op == Op::kVar && static_cast<size_t>(e->id) < ranges_.size()) return ranges_[e->id];
  if (e->op != Op::kFloorDiv || facts_.empty()) return RangeOfNode(e, operand);
  return RangeOfNode(e, [&](Expr arg) {
    Interval range = RangeOf(arg);
    for (const Fact& fact : facts_) {
      if (fact.expr == arg) range = Intersect(range, fact.range);
    }
    return range;
  });
}

Linear Simplifier::FloorDiv(const Linear& a, int64_t c) {
  KILN_CHECK(c > 0);
  if (c == 1) return a;
  if (a.overflow) return Atom(pool_.FloorDiv(ToExpr(a), pool_.Int(c)));
  Linear quotient = Constant(ir::FloorDiv(a.constant, c));
  Linear rest = Constant(ir::FloorMod(a.constant, c));
  for (const Term& t : a.terms) {
    if (t.coefficient % c == 0) {
      quotient.terms.push_back({t.atom, t.coefficient / c});
    } else {
      rest.terms.push_back(t);
    }
  }
  if (const auto common = CommonQuotient(RangeOf(rest), c)) {
    // Two quotients by at least 2: their sum fits.
    quotient.constant += *common;
    return quotient;
  }
  // Looks for rest = g*high + low with 0 <= low < g and g dividing c.
  for (const Term& pivot : rest.terms) {
    const int64_t g = std::gcd(pivot.coefficient, c);
    if (g == 1) continue;
    const auto [high, low] = SplitByFactor(rest, g);
    if (Interval{0, g - 1}.Contains(RangeOf(low))) return quotient + FloorDiv(high, c / g);
  }
  if (rest.constant == 0 && rest.terms.size() == 1 && rest.terms[0].coefficient == 1) {
    // (x // d) // c = x // (d*c)
    Expr inner = rest.terms[0].atom;
    if (inner->op == Op::kFloorDiv && inner->arg(1)->is_const_int() &&
        inner->arg(1)->int_value > 0) {
      if (const auto divisor = CheckedMul(inner->arg(1)->int_value, c))
        return quotient + FloorDiv(ToLinear(inner->arg(0)), *divisor);
    }
  }
  return quotient + Atom(pool_.FloorDiv(ToExpr(rest), pool_.Int(c)));
}

Linear Simplifier::FloorMod(const Linear& a, int64_t c) {
  KILN_CHECK(c > 0);
  if (c == 1) return {};
  if (a.overflow) return Atom(pool_.FloorMod(ToExpr(a), pool_.Int(c)));
  Linear rest = Constant(ir::FloorMod(a.constant, c));
  for (const Term& t : a.terms) {
    if (t.coefficient % c != 0) rest.terms.push_back(t);
  }
  if (const auto common = CommonQuotient(RangeOf(rest), c)) {
    rest.overflow = __builtin_sub_overflow(rest.constant, *common * c, &rest.constant);
    return rest;
  }
  for (const Term& pivot : rest.terms) {
    const int64_t g = std::gcd(pivot.coefficient, c);
    if (g == 1) continue;
    const auto [high, low] = SplitByFactor(rest, g);
    if (Interval{0, g - 1}.Contains(RangeOf(low))) return FloorMod(high, c / g) * g + low;
  }
  return Atom(pool_.FloorMod(ToExpr(rest), pool_.Int(c)));
}

Expr Simplifier::ToExpr(const Linear& e) {
  Expr sum = nullptr;
  for (const Term& t : e.terms) {
    if (t.coefficient <= 0) continue;
    Expr product = t.coefficient == 1 ? t.atom : pool_.Mul(t.atom, pool_.Int(t.coefficient));
    sum = sum == nullptr ? product : pool_.Add(sum, product);
  }
  const bool leading_constant = sum == nullptr;
  if (leading_constant) sum = pool_.Int(e.constant);
  for (const Term& t : e.terms) {
    if (t.coefficient >= 0) continue;
    const Expr factor = pool_.Int(Negative(t.coefficient));
    sum = pool_.Sub(sum, pool_.Mul(t.atom, factor));
  }
  if (leading_constant || e.constant == 0) return sum;
  return e.constant > 0 ? pool_.Add(sum, pool_.Int(e.constant))
                        : pool_.Sub(sum, pool_.Int(Negative(e.constant)));
}

Linear Simplifier::ToLinear(Expr e, const std::vector<Linear>* env, const LoadFn* load) {
  // The order and the quotients of a uint64 differ from those of its bits as an int64.
  if (e->type == ir::kUInt64 && !e->is_const_int()) return IndexAtom(Simplify(e, env, load));
  const Linear sum = SumOf(e, env, load);
  if (e->type == ir::kIndex || RangeOfType(e->type).Contains(RangeOf(sum))) return sum;
  // The value may wrap around.
  return IndexAtom(Simplify(e, env, load));
}

Linear Simplifier::SumOf(Expr e, const std::vector<Linear>* env, const LoadFn* load) {
  switch (e->op) {
    case Op::kInt:
      return Constant(e->int_value);
    case Op::kVar:
      if (env != nullptr) return (*env)[e->id];
      return static_cast<size_t>(e->id) < ranges_.size() ? Var(e->id)
                                                         : Atom(pool_.Var(e->id, e->type));
    case Op::kAdd:
      return ToLinear(e->arg(0), env, load) + ToLinear(e->arg(1), env, load);
    case Op::kSub:
      return ToLinear(e->arg(0), env, load) - ToLinear(e->arg(1), env, load);
    case Op::kMul: {
      const Linear a = ToLinear(e->arg(0), env, load), b = ToLinear(e->arg(1), env, load);
      if (a.is_constant()) return b * a.constant;
      if (b.is_constant()) return a * b.constant;
      return Atom(pool_.Mul(ToExpr(a), ToExpr(b)));
    }
    case Op::kFloorDiv:
    case Op::kFloorMod: {
      const Linear a = ToLinear(e->arg(0), env, load), b = ToLinear(e->arg(1), env, load);
      if (b.is_constant() && b.constant > 0) {
        return e->op == Op::kFloorDiv ? FloorDiv(a, b.constant) : FloorMod(a, b.constant);
      }
      return Atom(pool_.Binary(e->op, ToExpr(a), ToExpr(b)));
    }
    case Op::kBitAnd:
    case Op::kBitOr:
    case Op::kBitXor:
    case Op::kShl:
    case Op::kShr: {
      if (e->type != ir::kIndex) return IndexAtom(Simplify(e, env, load));
      const Expr bits = pool_.Binary(e->op, ToExpr(ToLinear(e->arg(0), env, load)),
                                     ToExpr(ToLinear(e->arg(1), env, load)));
      return ir::IsBits(bits->op) ? Atom(bits) : ToLinear(bits);
    }
    case Op::kMin:
    case Op::kMax: {
      const Linear a = ToLinear(e->arg(0), env, load), b = ToLinear(e->arg(1), env, load);
      const Interval difference = RangeOf(a - b);
      if (difference.hi <= 0) return e->op == Op::kMin ? a : b;
      if (difference.lo >= 0) return e->op == Op::kMin ? b : a;
      return Atom(pool_.Binary(e->op, ToExpr(a), ToExpr(b)));
    }
    case Op::kSelect:
    case Op::kIf: {
      Expr condition = Simplify(e->arg(0), env, load);
      if (condition->is_const_int())
        return ToLinear(e->arg(condition->int_value ? 1 : 2), env, load);
      Expr a = ToExpr(ToLinear(e->arg(1), env, load)), b = ToExpr(ToLinear(e->arg(2), env, load));
      return Atom(e->op == Op::kSelect ? pool_.Select(condition, a, b) : pool_.If(condition, a, b));
    }
    case Op::kCast:
      if (e->arg(0)->type.is_int()) return ToLinear(e->arg(0), env, load);
      return IndexAtom(pool_.Cast(e->type, Simplify(e->arg(0), env, load)));
    default:
      return IndexAtom(Simplify(e, env, load));
  }
}

Expr Simplifier::SimplifyComparison(Op op, Linear left, Linear right) {
  if (const auto decided = Decide(op, RangeOf(left - right))) return pool_.Bool(*decided);
  // Constants move to the right: i + 3 < 10 becomes i < 7.
  int64_t limit;
  if (right.is_constant() && !__builtin_sub_overflow(right.constant, left.constant, &limit)) {
    right.constant = limit;
    left.constant = 0;
  }
  return pool_.Binary(op, ToExpr(left), ToExpr(right));
}

Expr Simplifier::Simplify(Expr e, const std::vector<Linear>* env, const LoadFn* load) {
  if (e->op == Op::kLoad) {
    if (load != nullptr) return (*load)(e);
    std::vector<Expr> indices;
    indices.reserve(e->num_args);
    for (Expr index : e->args()) indices.push_back(Simplify(index, env, load));
    return pool_.Load(e->id, indices, e->type);
  }
  if (e->type == ir::kIndex && e->op != Op::kCast && e->op != Op::kReinterpret &&
      e->op != Op::kCall)
    return ToExpr(ToLinear(e, env, load));
  if (e->num_args == 0) return pool_.Import(e);
  if (ir::IsComparison(e->op) && e->arg(0)->type == ir::kIndex) {
    return SimplifyComparison(e->op, ToLinear(e->arg(0), env, load),
                              ToLinear(e->arg(1), env, load));
  }
  if (e->op == Op::kSelect || e->op == Op::kIf) {
    Expr condition = Simplify(e->arg(0), env, load);
    // The side that is not taken is not visited, because its accesses never happen.
    if (condition->is_const_int()) return Simplify(e->arg(condition->int_value ? 1 : 2), env, load);
    Expr a = Simplify(e->arg(1), env, load), b = Simplify(e->arg(2), env, load);
    return e->op == Op::kSelect ? pool_.Select(condition, a, b) : pool_.If(condition, a, b);
  }
  Expr args[4];
  KILN_CHECK(e->num_args <= 4);
  for (int i = 0; i < e->num_args; ++i) args[i] = Simplify(e->arg(i), env, load);
  return pool_.WithArgs(e, {args, e->num_args});
}

// The quotient may have another form than the remainder: for j below 2, i // 3 belongs to (2*i + j)
// // 3 % 2. The quotient is therefore made here, as FloorDiv makes it, and then looked up in the
// sum.
std::optional<QuotientPair> Simplifier::FindPair(const Linear& sum) {
  for (const Term& mod : sum.terms) {
    if (mod.atom->op != Op::kFloorMod || !mod.atom->arg(1)->is_const_int()) continue;
    const int64_t c = mod.atom->arg(1)->int_value;
    const auto coefficient = CheckedMul(mod.coefficient, c);
    if (c <= 0 || !coefficient) continue;
    const Linear quotient = FloorDiv(ToLinear(mod.atom->arg(0)), c);
    if (quotient.constant != 0 || quotient.terms.size() != 1 || quotient.terms[0].coefficient != 1)
      continue;
    const Term wanted{quotient.terms[0].atom, *coefficient};
    if (sum.Coefficient(wanted.atom) == wanted.coefficient)
      return QuotientPair{wanted, mod, mod.atom->arg(0)};
  }
  return std::nullopt;
}

Linear Simplifier::Recombine(const Linear& e) {
  Linear sum = e;
  while (const auto pair = FindPair(sum)) {
    sum.Remove(*pair);
    sum = MultiplyAdd(sum, ToLinear(pair->joined), pair->remainder.coefficient);
  }
  return sum;
}

Linear Flatten(Simplifier& simplifier, std::span<const Linear> indices,
               std::span<const int64_t> shape) {
  Linear sum;
  int64_t stride = 1;
  for (size_t i = indices.size(); i-- > 0;) {
    sum = MultiplyAdd(sum, indices[i], stride);
    stride *= shape[i];
  }
  return simplifier.Recombine(sum);
}

}  // namespace kiln::arith
