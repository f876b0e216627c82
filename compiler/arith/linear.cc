#include "compiler/arith/linear.h"

#include <algorithm>

#include "base/numbers/integers.h"
#include "compiler/ir/integer_ops.h"

namespace kiln::arith {
namespace {
using ir::Expr;
using ir::Op;

// The canonical order of atoms. It does not depend on addresses.
bool Before(Expr a, Expr b) {
  const bool va = a->op == Op::kVar, vb = b->op == Op::kVar;
  if (va != vb) return va;
  if (va) return a->id < b->id;
  return a->hash < b->hash;
}

// These functions wrap around and set `overflow`.
int64_t Add(int64_t a, int64_t b, bool& overflow) {
  int64_t sum;
  overflow |= __builtin_add_overflow(a, b, &sum);
  return sum;
}

int64_t Subtract(int64_t a, int64_t b, bool& overflow) {
  int64_t difference;
  overflow |= __builtin_sub_overflow(a, b, &difference);
  return difference;
}

int64_t Multiply(int64_t a, int64_t b, bool& overflow) {
  int64_t product;
  overflow |= __builtin_mul_overflow(a, b, &product);
  return product;
}

// combine(x, y, overflow) is the coefficient of an atom that has coefficient x in a and y in b.
template <typename Combine>
Linear Merge(const Linear& a, const Linear& b, Combine combine) {
  Linear out;
  bool overflow = a.overflow || b.overflow;
  out.constant = combine(a.constant, b.constant, overflow);
  auto i = a.terms.begin(), j = b.terms.begin();
  const auto a_end = a.terms.end(), b_end = b.terms.end();
  while (i != a_end || j != b_end) {
    if (j == b_end || (i != a_end && Before(i->atom, j->atom))) {
      out.terms.push_back(*i++);
    } else if (i != a_end && i->atom == j->atom) {
      const int64_t c = combine(i->coefficient, j->coefficient, overflow);
      if (c != 0) out.terms.push_back({i->atom, c});
      ++i, ++j;
    } else {
      const int64_t c = combine(0, j->coefficient, overflow);
      // A product may wrap around to 0.
      if (c != 0) out.terms.push_back({j->atom, c});
      ++j;
    }
  }
  out.overflow = overflow;
  return out;
}

std::optional<int64_t> KnownValue(KnownVars known, int32_t var) {
  if (var < 0 || static_cast<size_t>(var) >= known.size()) return std::nullopt;
  return known[static_cast<size_t>(var)];
}

// Returns true if e is x // c. The quotient (y // a) // c is written y // (a*c).
bool IsQuotient(Expr e, Expr x, int64_t c) {
  if (e->op != Op::kFloorDiv || !e->arg(1)->is_const_int()) return false;
  const int64_t divisor = e->arg(1)->int_value;
  if (e->arg(0) == x) return divisor == c;
  if (x->op != Op::kFloorDiv || !x->arg(1)->is_const_int() || e->arg(0) != x->arg(0)) return false;
  const int64_t a = x->arg(1)->int_value;
  return a > 0 && c > 0 && divisor % a == 0 && divisor / a == c;
}

// Adds e * factor to the form.
void Accumulate(Expr e, int64_t factor, KnownVars known, Linear& form) {
  if (factor == 0) return;
  if (e->is_const_int()) {
    const int64_t value = Multiply(e->int_value, factor, form.overflow);
    form.constant = Add(form.constant, value, form.overflow);
    return;
  }
  if (e->type != ir::kInt64) return form.AddTerm(e, factor);
  if (e->op == Op::kAdd || e->op == Op::kSub) {
    Accumulate(e->arg(0), factor, known, form);
    if (e->op == Op::kSub) factor = Multiply(factor, -1, form.overflow);
    return Accumulate(e->arg(1), factor, known, form);
  }
  if (e->op == Op::kMul) {
    for (int i = 1; i >= 0; --i) {
      const auto value = Evaluate(e->arg(i), known);
      if (value)
        return Accumulate(e->arg(1 - i), Multiply(factor, *value, form.overflow), known, form);
    }
    return form.AddTerm(e, factor);
  }
  const auto value = Evaluate(e, known);
  if (!value) return form.AddTerm(e, factor);
  form.constant = Add(form.constant, Multiply(*value, factor, form.overflow), form.overflow);
}

}  // namespace

int64_t Linear::Coefficient(Expr atom) const {
  const auto found = std::ranges::find(terms, atom, &Term::atom);
  return found == terms.end() ? 0 : found->coefficient;
}

void Linear::AddTerm(Expr atom, int64_t coefficient) {
  if (coefficient == 0) return;
  const auto found = std::ranges::find(terms, atom, &Term::atom);
  if (found == terms.end()) {
    terms.push_back({atom, coefficient});
  } else if ((found->coefficient = Add(found->coefficient, coefficient, overflow)) == 0) {
    terms.erase(found);
  }
}

void Linear::AddScaled(const Linear& other, int64_t factor) {
  if (factor == 0) return;
  overflow |= other.overflow;
  constant = Add(constant, Multiply(other.constant, factor, overflow), overflow);
  for (const Term& term : other.terms)
    AddTerm(term.atom, Multiply(term.coefficient, factor, overflow));
}

void Linear::Remove(const QuotientPair& pair) {
  const auto is_part = [&](const Term& t) { return t == pair.quotient || t == pair.remainder; };
  terms.erase(std::remove_if(terms.begin(), terms.end(), is_part), terms.end());
}

Linear operator+(const Linear& a, const Linear& b) {
  return Merge(a, b, [](int64_t x, int64_t y, bool& overflow) { return Add(x, y, overflow); });
}
Linear operator-(const Linear& a, const Linear& b) {
  return Merge(a, b, [](int64_t x, int64_t y, bool& overflow) { return Subtract(x, y, overflow); });
}

Linear operator*(const Linear& a, int64_t factor) {
  if (factor == 0) return {};
  Linear out = a;
  bool overflow = false;
  out.constant = Multiply(a.constant, factor, overflow);
  for (Term& t : out.terms) t.coefficient = Multiply(t.coefficient, factor, overflow);
  if (!overflow) return out;
  out.overflow = true;
  const auto is_zero = [](const Term& t) { return t.coefficient == 0; };
  out.terms.erase(std::remove_if(out.terms.begin(), out.terms.end(), is_zero), out.terms.end());
  return out;
}

Linear MultiplyAdd(const Linear& a, const Linear& b, int64_t factor) {
  if (factor == 0) return a;
  return Merge(a, b, [factor](int64_t x, int64_t y, bool& overflow) {
    return Add(x, Multiply(y, factor, overflow), overflow);
  });
}

Linear Constant(int64_t value) {
  Linear out;
  out.constant = value;
  return out;
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
  // Arithmetic in narrow types wraps around. Only exact integers and comparisons of them are folded
  // here.
  if (e->arg(0)->type != ir::kInt64 && !e->arg(0)->type.is_bool()) return std::nullopt;
  const auto a = Evaluate(e->arg(0), known);
  if (!a) return std::nullopt;
  const auto b = Evaluate(e->arg(1), known);
  if (!b) return std::nullopt;
  return ir::EvaluateBinary(e->op, e->arg(0)->type, *a, *b);
}

Linear Linearize(Expr e, KnownVars known) {
  Linear form;
  Accumulate(e, 1, known, form);
  return form;
}

std::optional<QuotientPair> FindQuotientPair(const Linear& form) {
  for (const Term& remainder : form.terms) {
    const Expr mod = remainder.atom;
    if (mod->op != Op::kFloorMod || !mod->arg(1)->is_const_int()) continue;
    const auto coefficient = CheckedMul(remainder.coefficient, mod->arg(1)->int_value);
    for (const Term& quotient : form.terms) {
      if (quotient.coefficient == coefficient &&
          IsQuotient(quotient.atom, mod->arg(0), mod->arg(1)->int_value))
        return QuotientPair{quotient, remainder, mod->arg(0)};
    }
  }
  return std::nullopt;
}

void JoinQuotients(Linear& form, KnownVars known) {
  while (const auto pair = FindQuotientPair(form)) {
    form.Remove(*pair);
    form.AddScaled(Linearize(pair->joined, known), pair->remainder.coefficient);
  }
}

Linear Flatten(std::span<const Expr> indices, std::span<const int64_t> shape, KnownVars known) {
  Linear address;
  for (size_t d = 0; d < indices.size(); ++d) {
    int64_t stride = 1;
    for (int64_t extent : shape.subspan(d + 1)) stride *= extent;
    Linear index = Linearize(indices[d], known);
    JoinQuotients(index, known);
    address.AddScaled(index, stride);
  }
  JoinQuotients(address, known);
  return address;
}

}  // namespace kiln::arith
