// Linear forms: constant + sum of coefficient * atom. An atom is a variable or a term that is not
// linear (x // c, x % c, min, a load, ...). Every atom occurs once, and no coefficient is 0.
//
// The terms stand in one of two orders:
//   * canonical: variables by number, then other atoms by structure. +, - and * keep this order.
//     Equal sums are equal values.
//   * of first occurrence: Linearize gives this order and AddScaled keeps it. Code that is made
//     term by term comes out in the order of the expression.
//
// If coefficients or constants do not fit in int64_t, they wrap around and `overflow` is set. The
// form then still has the value of the expression modulo 2^64, but its range is unknown.
//
// Values, any thread. Cost: proportional to the terms; no allocation for up to six of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "absl/container/inlined_vector.h"
#include "compiler/ir/expr.h"

namespace kiln::arith {

struct Term {
  ir::Expr atom;
  int64_t coefficient;
  bool operator==(const Term&) const = default;
};

// Two terms that join to one: k*c*(x // c) + k*(x % c) is k*x.
struct QuotientPair {
  Term quotient, remainder;
  // The expression x.
  ir::Expr joined;
};

struct Linear {
  int64_t constant = 0;
  absl::InlinedVector<Term, 6> terms;
  bool overflow = false;

  bool is_constant() const { return terms.empty(); }
  // Returns 0 for an absent atom.
  int64_t Coefficient(ir::Expr atom) const;
  // Adds other * factor, in the order of first occurrence.
  void AddScaled(const Linear& other, int64_t factor);
  // Adds atom * coefficient, in the order of first occurrence.
  void AddTerm(ir::Expr atom, int64_t coefficient);
  // Removes the two terms.
  void Remove(const QuotientPair& pair);

  bool operator==(const Linear&) const = default;
};

// These operators take and return canonical forms.
Linear operator+(const Linear& a, const Linear& b);
Linear operator-(const Linear& a, const Linear& b);
Linear operator*(const Linear& a, int64_t factor);
// Returns a + b*factor.
Linear MultiplyAdd(const Linear& a, const Linear& b, int64_t factor);

Linear Constant(int64_t value);

// The value of each variable if it is known (unrolled loops). Numbers past the end are unknown.
using KnownVars = std::span<const std::optional<int64_t>>;

// Returns the value of an integer or bool expression without loads if all its variables are known,
// else nothing.
std::optional<int64_t> Evaluate(ir::Expr e, KnownVars known);

// Returns the form of an expression as it is written, in the order of first occurrence. Atoms are
// nodes of e and are not simplified inside. Arithmetic in types narrower than int64 can wrap
// around, so it is an atom.
Linear Linearize(ir::Expr e, KnownVars known = {});

// Returns a pair of terms of the form, or nothing if there is none.
std::optional<QuotientPair> FindQuotientPair(const Linear& form);

// Joins all such pairs, so that the indices of a loop that was fused and split again, or of a
// flattened buffer, become the loop. Joined terms stand last.
void JoinQuotients(Linear& form, KnownVars known = {});

// Returns the address of an element in a row-major buffer, in elements, with quotients joined.
Linear Flatten(std::span<const ir::Expr> indices, std::span<const int64_t> shape,
               KnownVars known = {});

}  // namespace kiln::arith
