#include "compiler/codegen/affine.h"

#include <algorithm>
#include <array>

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::Op;

std::optional<int64_t> KnownValue(KnownVars known, int32_t var) {
  if (var < 0 || static_cast<size_t>(var) >= known.size()) return std::nullopt;
  return known[static_cast<size_t>(var)];
}

bool IsExactInteger(const ir::Type& type) { return type == ir::kInt64; }

LinearForm Constant(int64_t value) {
  LinearForm form;
  form.constant = value;
  return form;
}

LinearForm Atom(Expr e) {
  LinearForm form;
  form.terms.push_back({e, 1});
  return form;
}

// Whether it is x // c. (y // a) // c is written y // (a*c).
bool IsQuotient(Expr e, Expr x, int64_t c) {
  if (e->op != Op::kFloorDiv || !e->arg(1)->is_const_int()) return false;
  const int64_t divisor = e->arg(1)->int_value;
  if (e->arg(0) == x) return divisor == c;
  if (x->op != Op::kFloorDiv || !x->arg(1)->is_const_int() || e->arg(0) != x->arg(0)) return false;
  const int64_t a = x->arg(1)->int_value;
  return a > 0 && c > 0 && divisor % a == 0 && divisor / a == c;
}

// Replaces k*(x % c) + k*c*(x // c) by k*x, once. False when there is no such pair.
bool JoinOneQuotient(LinearForm& form, KnownVars known) {
  for (const Term& mod : form.terms) {
    if (mod.atom->op != Op::kFloorMod || !mod.atom->arg(1)->is_const_int()) continue;
    const Expr x = mod.atom->arg(0);
    const int64_t c = mod.atom->arg(1)->int_value;
    for (const Term& div : form.terms) {
      if (!IsQuotient(div.atom, x, c) || div.coefficient != mod.coefficient * c) continue;
      const int64_t k = mod.coefficient;
      const std::array<Expr, 2> gone = {mod.atom, div.atom};
      std::erase_if(form.terms,
                    [&](const Term& t) { return t.atom == gone[0] || t.atom == gone[1]; });
      form.Add(Linearize(x, known), k);
      return true;
    }
  }
  return false;
}

LinearForm LinearizeProduct(Expr e, KnownVars known) {
  const LinearForm a = Linearize(e->arg(0), known);
  const LinearForm b = Linearize(e->arg(1), known);
  LinearForm product;
  if (b.terms.empty()) {
    product.Add(a, b.constant);
  } else if (a.terms.empty()) {
    product.Add(b, a.constant);
  } else {
    return Atom(e);
  }
  return product;
}

std::optional<int64_t> EvaluateBinary(Op op, int64_t a, int64_t b) {
  switch (op) {
    case Op::kAdd:
      return a + b;
    case Op::kSub:
      return a - b;
    case Op::kMul:
      return a * b;
    case Op::kFloorDiv:
      return b == 0 ? std::nullopt : std::optional(ir::FloorDiv(a, b));
    case Op::kFloorMod:
      return b == 0 ? std::nullopt : std::optional(ir::FloorMod(a, b));
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
    default:
      return std::nullopt;
  }
}

int64_t Saturate(__int128 v) {
  if (v <= INT64_MIN) return INT64_MIN;
  if (v >= INT64_MAX) return INT64_MAX;
  return static_cast<int64_t>(v);
}

Range MulRanges(Range a, Range b) {
  if (!a.bounded() || !b.bounded()) return {};
  const __int128 products[] = {
      static_cast<__int128>(a.lo) * b.lo, static_cast<__int128>(a.lo) * b.hi,
      static_cast<__int128>(a.hi) * b.lo, static_cast<__int128>(a.hi) * b.hi};
  return {Saturate(*std::min_element(products, products + 4)),
          Saturate(*std::max_element(products, products + 4))};
}

Range QuotientRange(Range a, int64_t divisor) {
  if (!a.bounded() || divisor <= 0) return {};
  return {ir::FloorDiv(a.lo, divisor), ir::FloorDiv(a.hi, divisor)};
}

Range RemainderRange(Range a, int64_t divisor) {
  if (divisor <= 0) return {};
  if (a.bounded() && ir::FloorDiv(a.lo, divisor) == ir::FloorDiv(a.hi, divisor)) {
    return {ir::FloorMod(a.lo, divisor), ir::FloorMod(a.hi, divisor)};
  }
  return {0, divisor - 1};
}
}  // namespace

void LinearForm::Add(const LinearForm& other, int64_t factor) {
  constant += other.constant * factor;
  if (factor == 0) return;
  for (const Term& term : other.terms) {
    auto it = std::find_if(terms.begin(), terms.end(),
                           [&](const Term& t) { return t.atom == term.atom; });
    if (it == terms.end()) {
      terms.push_back({term.atom, term.coefficient * factor});
    } else if ((it->coefficient += term.coefficient * factor) == 0) {
      terms.erase(it);
    }
  }
}

int64_t LinearForm::Coefficient(Expr atom) const {
  for (const Term& term : terms) {
    if (term.atom == atom) return term.coefficient;
  }
  return 0;
}

LinearForm Linearize(Expr e, KnownVars known) {
  if (e->op == Op::kInt) return Constant(e->int_value);
  if (!IsExactInteger(e->type)) return Atom(e);
  switch (e->op) {
    case Op::kVar: {
      const auto value = KnownValue(known, e->id);
      return value ? Constant(*value) : Atom(e);
    }
    case Op::kAdd:
    case Op::kSub: {
      LinearForm sum = Linearize(e->arg(0), known);
      sum.Add(Linearize(e->arg(1), known), e->op == Op::kAdd ? 1 : -1);
      JoinQuotients(sum, known);
      return sum;
    }
    case Op::kMul:
      return LinearizeProduct(e, known);
    default: {
      const auto value = Evaluate(e, known);
      return value ? Constant(*value) : Atom(e);
    }
  }
}

void JoinQuotients(LinearForm& form, KnownVars known) {
  while (JoinOneQuotient(form, known)) {
  }
}

std::optional<int64_t> Evaluate(Expr e, KnownVars known) {
  if (!e->type.is_int() && !e->type.is_bool()) return std::nullopt;
  switch (e->op) {
    case Op::kInt:
      return e->int_value;
    case Op::kVar:
      return KnownValue(known, e->id);
    case Op::kNot: {
      const auto a = Evaluate(e->arg(0), known);
      return a ? std::optional<int64_t>(*a == 0) : std::nullopt;
    }
    case Op::kSelect:
    case Op::kIf: {
      const auto condition = Evaluate(e->arg(0), known);
      if (!condition) return std::nullopt;
      return Evaluate(e->arg(*condition ? 1 : 2), known);
    }
    default:
      break;
  }
  if (!ir::IsBinary(e->op)) return std::nullopt;
  // Narrow types wrap; only exact integers and what compares them are folded here.
  if (!IsExactInteger(e->arg(0)->type) && !e->arg(0)->type.is_bool()) return std::nullopt;
  const auto a = Evaluate(e->arg(0), known);
  if (!a) return std::nullopt;
  const auto b = Evaluate(e->arg(1), known);
  if (!b) return std::nullopt;
  return EvaluateBinary(e->op, *a, *b);
}

Range AddRanges(Range a, Range b) {
  if (!a.bounded() || !b.bounded()) return {};
  return {Saturate(static_cast<__int128>(a.lo) + b.lo),
          Saturate(static_cast<__int128>(a.hi) + b.hi)};
}

Range ScaleRange(Range a, int64_t factor) { return MulRanges(a, {factor, factor}); }

Range RangeOf(Expr e, std::span<const Range> vars) {
  if (e->op == Op::kInt) return {e->int_value, e->int_value};
  if (e->type.is_bool()) return {0, 1};
  if (!IsExactInteger(e->type)) return {};
  switch (e->op) {
    case Op::kVar:
      if (e->id < 0 || static_cast<size_t>(e->id) >= vars.size()) return {};
      return vars[static_cast<size_t>(e->id)];
    case Op::kAdd:
      return AddRanges(RangeOf(e->arg(0), vars), RangeOf(e->arg(1), vars));
    case Op::kSub:
      return AddRanges(RangeOf(e->arg(0), vars), ScaleRange(RangeOf(e->arg(1), vars), -1));
    case Op::kMul:
      return MulRanges(RangeOf(e->arg(0), vars), RangeOf(e->arg(1), vars));
    case Op::kFloorDiv:
      if (!e->arg(1)->is_const_int()) return {};
      return QuotientRange(RangeOf(e->arg(0), vars), e->arg(1)->int_value);
    case Op::kFloorMod:
      if (!e->arg(1)->is_const_int()) return {};
      return RemainderRange(RangeOf(e->arg(0), vars), e->arg(1)->int_value);
    case Op::kMin:
    case Op::kMax: {
      const Range a = RangeOf(e->arg(0), vars), b = RangeOf(e->arg(1), vars);
      if (e->op == Op::kMin) return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
      return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    }
    case Op::kSelect:
    case Op::kIf: {
      const Range a = RangeOf(e->arg(1), vars), b = RangeOf(e->arg(2), vars);
      return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
    }
    default:
      return {};
  }
}

Range RangeOf(const LinearForm& form, std::span<const Range> vars) {
  Range sum{form.constant, form.constant};
  for (const Term& term : form.terms) {
    sum = AddRanges(sum, ScaleRange(RangeOf(term.atom, vars), term.coefficient));
  }
  return sum;
}

}  // namespace kiln::codegen
