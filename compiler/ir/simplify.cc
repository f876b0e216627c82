#include "compiler/ir/simplify.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace kiln::ir {
namespace {

// Stands for "unbounded"; far from overflow when summed.
constexpr int64_t kFar = int64_t{1} << 60;

// Variables by number, then other atoms by structure: the order does not depend on addresses.
bool Before(Expr a, Expr b) {
  const bool va = a->op == Op::kVar, vb = b->op == Op::kVar;
  if (va != vb) return va;
  if (va) return a->id < b->id;
  return a->hash < b->hash;
}

int64_t Clamp(int64_t v) { return std::clamp(v, -kFar, kFar); }

int64_t MulClamped(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return ((a < 0) == (b < 0)) ? kFar : -kFar;
  return Clamp(r);
}

// The values of an int type.
Interval RangeOfType(Type type) {
  if (!type.is_int() || type.bits >= 62) return {-kFar, kFar};
  return {-(int64_t{1} << (type.bits - 1)), (int64_t{1} << (type.bits - 1)) - 1};
}

bool Within(Interval inner, Interval outer) { return inner.lo >= outer.lo && inner.hi <= outer.hi; }

Linear Combine(const Linear& a, const Linear& b, int64_t sign) {
  Linear out;
  out.constant = a.constant + sign * b.constant;
  size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    if (j == b.terms.size() || (i < a.terms.size() && Before(a.terms[i].atom, b.terms[j].atom))) {
      out.terms.push_back(a.terms[i++]);
    } else if (i < a.terms.size() && a.terms[i].atom == b.terms[j].atom) {
      const int64_t c = a.terms[i].coefficient + sign * b.terms[j].coefficient;
      if (c != 0) out.terms.push_back({a.terms[i].atom, c});
      ++i, ++j;
    } else {
      out.terms.push_back({b.terms[j].atom, sign * b.terms[j].coefficient});
      ++j;
    }
  }
  return out;
}

}  // namespace

Linear operator+(const Linear& a, const Linear& b) { return Combine(a, b, 1); }
Linear operator-(const Linear& a, const Linear& b) { return Combine(a, b, -1); }

Linear operator*(const Linear& a, int64_t factor) {
  if (factor == 0) return {};
  Linear out = a;
  out.constant *= factor;
  for (Term& t : out.terms) t.coefficient *= factor;
  return out;
}

Linear Constant(int64_t value) {
  Linear out;
  out.constant = value;
  return out;
}

int32_t Simplifier::AddVar(int64_t extent) {
  ranges_.push_back({0, extent - 1});
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

Linear Simplifier::IndexAtom(Expr e) { return Atom(pool_.Cast(kIndex, e)); }

void Simplifier::Assume(Expr condition) {
  if (condition->op == Op::kAnd) {
    Assume(condition->arg(0));
    return Assume(condition->arg(1));
  }
  if (!IsComparison(condition->op) || condition->op == Op::kNe || condition->arg(0)->type != kIndex)
    return;
  // sum + constant <= 0, and the like
  Linear sum = ToLinear(condition->arg(0)) - ToLinear(condition->arg(1));
  const int64_t constant = std::exchange(sum.constant, 0);
  if (sum.is_constant()) return;
  Interval range = RangeOf(sum);
  const bool is_equal = condition->op == Op::kEq;
  if (is_equal || condition->op == Op::kLe) range.hi = std::min(range.hi, -constant);
  if (is_equal || condition->op == Op::kGe) range.lo = std::max(range.lo, -constant);
  if (condition->op == Op::kLt) range.hi = std::min(range.hi, -constant - 1);
  if (condition->op == Op::kGt) range.lo = std::max(range.lo, -constant + 1);
  if (range.lo > range.hi) return;  // never holds
  const Expr e = ToExpr(sum);
  facts_.push_back({std::move(sum), range, e});
}

// e = k*fact + rest.
void Simplifier::Narrow(const Linear& e, Interval& range) const {
  for (const Fact& fact : facts_) {
    const Term& lead = fact.sum.terms[0];
    const auto same = std::ranges::find(e.terms, lead.atom, &Term::atom);
    if (same == e.terms.end() || same->coefficient % lead.coefficient != 0) continue;
    const int64_t k = same->coefficient / lead.coefficient;
    const Linear rest = e - fact.sum * k;
    if (rest.terms.size() + fact.sum.terms.size() != e.terms.size()) continue;
    const Interval r = RangeByTerms(rest);
    const int64_t a = MulClamped(fact.range.lo, k), b = MulClamped(fact.range.hi, k);
    const Interval narrowed{std::max(range.lo, Clamp(std::min(a, b) + r.lo)),
                            std::min(range.hi, Clamp(std::max(a, b) + r.hi))};
    if (narrowed.lo <= narrowed.hi) range = narrowed;
  }
}

Interval Simplifier::RangeOf(const Linear& e) const {
  Interval range = RangeByTerms(e);
  if (!facts_.empty()) Narrow(e, range);
  return range;
}

Interval Simplifier::RangeByTerms(const Linear& e) const {
  Interval r{e.constant, e.constant};
  for (const Term& t : e.terms) {
    const Interval a = RangeOf(t.atom);
    const int64_t lo = MulClamped(a.lo, t.coefficient), hi = MulClamped(a.hi, t.coefficient);
    r.lo = Clamp(r.lo + std::min(lo, hi));
    r.hi = Clamp(r.hi + std::max(lo, hi));
  }
  return r;
}

Interval Simplifier::RangeOf(Expr e) const {
  switch (e->op) {
    case Op::kInt:
      return {e->int_value, e->int_value};
    case Op::kVar:
      if (static_cast<size_t>(e->id) < ranges_.size()) return ranges_[e->id];
      return {-kFar, kFar};
    case Op::kAdd:
    case Op::kSub: {
      const Interval a = RangeOf(e->arg(0)), b = RangeOf(e->arg(1));
      if (e->op == Op::kAdd) return {Clamp(a.lo + b.lo), Clamp(a.hi + b.hi)};
      return {Clamp(a.lo - b.hi), Clamp(a.hi - b.lo)};
    }
    case Op::kMul: {
      const Interval a = RangeOf(e->arg(0)), b = RangeOf(e->arg(1));
      const int64_t p[] = {MulClamped(a.lo, b.lo), MulClamped(a.lo, b.hi), MulClamped(a.hi, b.lo),
                           MulClamped(a.hi, b.hi)};
      return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
    }
    case Op::kFloorDiv: {
      Interval a = RangeOf(e->arg(0));
      for (const Fact& fact : facts_) {
        if (fact.e == e->arg(0)) a = {std::max(a.lo, fact.range.lo), std::min(a.hi, fact.range.hi)};
      }
      if (!e->arg(1)->is_const_int() || e->arg(1)->int_value <= 0) return {-kFar, kFar};
      const int64_t c = e->arg(1)->int_value;
      return {ir::FloorDiv(a.lo, c), ir::FloorDiv(a.hi, c)};
    }
    case Op::kFloorMod: {
      if (!e->arg(1)->is_const_int() || e->arg(1)->int_value <= 0) return {-kFar, kFar};
      const int64_t c = e->arg(1)->int_value;
      const Interval a = RangeOf(e->arg(0));
      if (ir::FloorDiv(a.lo, c) == ir::FloorDiv(a.hi, c))
        return {ir::FloorMod(a.lo, c), ir::FloorMod(a.hi, c)};
      return {0, c - 1};
    }
    case Op::kMin: {
      const Interval a = RangeOf(e->arg(0)), b = RangeOf(e->arg(1));
      return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    }
    case Op::kMax: {
      const Interval a = RangeOf(e->arg(0)), b = RangeOf(e->arg(1));
      return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    }
    case Op::kSelect:
    case Op::kIf: {
      const Interval a = RangeOf(e->arg(1)), b = RangeOf(e->arg(2));
      return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
    }
    case Op::kCast:
      if (e->arg(0)->type.is_bool()) return {0, 1};
      if (e->arg(0)->type.is_int()) {
        // What does not fit wraps around, where it is computed or here.
        const Interval a = RangeOf(e->arg(0));
        const Interval source = RangeOfType(e->arg(0)->type), result = RangeOfType(e->type);
        const Interval value = Within(a, source) ? a : source;
        return Within(value, result) ? value : result;
      }
      return RangeOfType(e->type);
    default:
      if (e->type.is_bool()) return {0, 1};
      return RangeOfType(e->type);
  }
}

Linear Simplifier::FloorDiv(const Linear& a, int64_t c) {
  KILN_CHECK(c > 0);
  if (c == 1) return a;
  Linear quotient = Constant(ir::FloorDiv(a.constant, c));
  Linear rest = Constant(ir::FloorMod(a.constant, c));
  for (const Term& t : a.terms) {
    if (t.coefficient % c == 0) {
      quotient.terms.push_back({t.atom, t.coefficient / c});
    } else {
      rest.terms.push_back(t);
    }
  }
  const Interval range = RangeOf(rest);
  if (ir::FloorDiv(range.lo, c) == ir::FloorDiv(range.hi, c)) {
    quotient.constant += ir::FloorDiv(range.lo, c);
    return quotient;
  }
  // rest = g*high + low with 0 <= low < g and g dividing c.
  for (const Term& pivot : rest.terms) {
    const int64_t g = std::gcd(pivot.coefficient, c);
    if (g == 1) continue;
    Linear low = Constant(rest.constant % g), high = Constant(rest.constant / g);
    for (const Term& t : rest.terms) {
      if (t.coefficient % g == 0) {
        high.terms.push_back({t.atom, t.coefficient / g});
      } else {
        low.terms.push_back(t);
      }
    }
    const Interval r = RangeOf(low);
    if (r.lo >= 0 && r.hi < g) return quotient + FloorDiv(high, c / g);
  }
  if (rest.constant == 0 && rest.terms.size() == 1 && rest.terms[0].coefficient == 1) {
    Expr inner = rest.terms[0].atom;  // (x // d) // c = x // (d*c)
    if (inner->op == Op::kFloorDiv && inner->arg(1)->is_const_int() &&
        inner->arg(1)->int_value > 0) {
      return quotient + FloorDiv(ToLinear(inner->arg(0)), inner->arg(1)->int_value * c);
    }
  }
  return quotient + Atom(pool_.FloorDiv(ToExpr(rest), pool_.Int(c)));
}

Linear Simplifier::FloorMod(const Linear& a, int64_t c) {
  KILN_CHECK(c > 0);
  if (c == 1) return {};
  Linear rest = Constant(ir::FloorMod(a.constant, c));
  for (const Term& t : a.terms) {
    if (t.coefficient % c != 0) rest.terms.push_back(t);
  }
  const Interval range = RangeOf(rest);
  if (ir::FloorDiv(range.lo, c) == ir::FloorDiv(range.hi, c)) {
    rest.constant -= c * ir::FloorDiv(range.lo, c);
    return rest;
  }
  for (const Term& pivot : rest.terms) {
    const int64_t g = std::gcd(pivot.coefficient, c);
    if (g == 1) continue;
    Linear low = Constant(rest.constant % g), high = Constant(rest.constant / g);
    for (const Term& t : rest.terms) {
      if (t.coefficient % g == 0) {
        high.terms.push_back({t.atom, t.coefficient / g});
      } else {
        low.terms.push_back(t);
      }
    }
    const Interval r = RangeOf(low);
    if (r.lo >= 0 && r.hi < g) return FloorMod(high, c / g) * g + low;
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
    sum =
        pool_.Sub(sum, t.coefficient == -1 ? t.atom : pool_.Mul(t.atom, pool_.Int(-t.coefficient)));
  }
  if (leading_constant || e.constant == 0) return sum;
  return e.constant > 0 ? pool_.Add(sum, pool_.Int(e.constant))
                        : pool_.Sub(sum, pool_.Int(-e.constant));
}

Linear Simplifier::ToLinear(Expr e, const std::vector<Linear>* env, const LoadFn* load) {
  const Linear sum = SumOf(e, env, load);
  if (e->type == kIndex || Within(RangeOf(sum), RangeOfType(e->type))) return sum;
  return IndexAtom(Simplify(e, env, load));  // it may wrap around
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

Expr Simplifier::SimplifyComparison(Op op, const Linear& a, const Linear& b) {
  const Linear difference = a - b;
  const Interval r = RangeOf(difference);
  switch (op) {
    case Op::kLt:
      if (r.hi < 0) return pool_.Bool(true);
      if (r.lo >= 0) return pool_.Bool(false);
      break;
    case Op::kLe:
      if (r.hi <= 0) return pool_.Bool(true);
      if (r.lo > 0) return pool_.Bool(false);
      break;
    case Op::kGt:
      if (r.lo > 0) return pool_.Bool(true);
      if (r.hi <= 0) return pool_.Bool(false);
      break;
    case Op::kGe:
      if (r.lo >= 0) return pool_.Bool(true);
      if (r.hi < 0) return pool_.Bool(false);
      break;
    case Op::kEq:
    case Op::kNe:
      if (r.lo > 0 || r.hi < 0) return pool_.Bool(op == Op::kNe);
      if (difference.is_constant()) return pool_.Bool(op == Op::kEq);
      break;
    default:
      break;
  }
  // Constants to the right: i + 3 < 10 -> i < 7.
  Linear left = a, right = b;
  if (right.is_constant()) {
    right.constant -= left.constant;
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
  if (e->type == kIndex && e->op != Op::kCast && e->op != Op::kCall)
    return ToExpr(ToLinear(e, env, load));
  if (e->num_args == 0) return pool_.Import(e);
  if (IsComparison(e->op) && e->arg(0)->type == kIndex) {
    return SimplifyComparison(e->op, ToLinear(e->arg(0), env, load),
                              ToLinear(e->arg(1), env, load));
  }
  if (e->op == Op::kSelect || e->op == Op::kIf) {
    Expr condition = Simplify(e->arg(0), env, load);
    // The side not taken is not visited: its accesses never happen.
    if (condition->is_const_int()) return Simplify(e->arg(condition->int_value ? 1 : 2), env, load);
    Expr a = Simplify(e->arg(1), env, load), b = Simplify(e->arg(2), env, load);
    return e->op == Op::kSelect ? pool_.Select(condition, a, b) : pool_.If(condition, a, b);
  }
  Expr args[4];
  KILN_CHECK(e->num_args <= 4);
  for (int i = 0; i < e->num_args; ++i) args[i] = Simplify(e->arg(i), env, load);
  return pool_.WithArgs(e, {args, e->num_args});
}

Linear Simplifier::Recombine(const Linear& e) {
  Linear sum = e;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Term& mod : sum.terms) {
      if (mod.atom->op != Op::kFloorMod || !mod.atom->arg(1)->is_const_int()) continue;
      const int64_t c = mod.atom->arg(1)->int_value;
      const Linear x = ToLinear(mod.atom->arg(0));
      const Linear quotient = FloorDiv(x, c);
      if (quotient.constant != 0 || quotient.terms.size() != 1 ||
          quotient.terms[0].coefficient != 1)
        continue;
      const auto found = std::find_if(sum.terms.begin(), sum.terms.end(), [&](const Term& t) {
        return t.atom == quotient.terms[0].atom && t.coefficient == mod.coefficient * c;
      });
      if (found == sum.terms.end()) continue;
      const int64_t k = mod.coefficient;
      sum = sum - Atom(mod.atom) * k - quotient * (k * c) + x * k;
      changed = true;
      break;
    }
  }
  return sum;
}

Linear Flatten(Simplifier& simplifier, std::span<const Linear> indices,
               std::span<const int64_t> shape) {
  Linear sum;
  int64_t stride = 1;
  for (size_t i = indices.size(); i-- > 0;) {
    sum = sum + indices[i] * stride;
    stride *= shape[i];
  }
  return simplifier.Recombine(sum);
}

}  // namespace kiln::ir
