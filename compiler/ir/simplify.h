// Exact simplification of quasi-affine index arithmetic.
//
// A Linear is an integer sum  constant + sum coefficient * atom  where an atom is a variable or a
// term that is not linear (x // c, x % c, min, max, a load). Sums are kept sorted without zero
// coefficients, so equal sums are equal values.
//
// A Simplifier knows the range of every variable (loops run from 0 to extent-1) and uses it to
// decide comparisons and to take quotients and remainders apart:
//   (c*q + r) // c = q        when 0 <= r < c
//   (c*q + r) %  c = r        when 0 <= r < c
//   (g*q + r) // (g*c) = q//c when 0 <= r < g
//
// Where a condition holds more is known: a FactScope tells it the simplifier, for as long as it
// lives.
//
// Cost: proportional to the terms; no allocation for sums of up to six terms. One thread at a time,
// as its pool.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "compiler/ir/expr.h"

namespace kiln::ir {

struct Interval {
  int64_t lo, hi;  // both inside
  bool operator==(const Interval&) const = default;
};

struct Term {
  Expr atom;
  int64_t coefficient;
  bool operator==(const Term&) const = default;
};

struct Linear {
  int64_t constant = 0;
  absl::InlinedVector<Term, 6> terms;

  bool is_constant() const { return terms.empty(); }
  bool operator==(const Linear&) const = default;
};

Linear operator+(const Linear& a, const Linear& b);
Linear operator-(const Linear& a, const Linear& b);
Linear operator*(const Linear& a, int64_t factor);
Linear Constant(int64_t value);

class Simplifier {
 public:
  explicit Simplifier(ExprPool& pool) : pool_(pool) {}

  ExprPool& pool() { return pool_; }

  // Declares the variable of the next number: values 0 .. extent-1.
  int32_t AddVar(int64_t extent);
  int num_vars() const { return static_cast<int>(ranges_.size()); }
  Linear Var(int32_t id);

  Interval RangeOf(const Linear& e) const;
  Interval RangeOf(Expr e) const;  // of an integer expression

  Linear FloorDiv(const Linear& a, int64_t divisor);  // divisor > 0
  Linear FloorMod(const Linear& a, int64_t divisor);

  // How to treat a load that occurs in the expression: gives what stands for it. Without it loads
  // stay.
  using LoadFn = absl::FunctionRef<Expr(Expr load)>;

  // An expression of any int type as a sum of kIndex terms. Variable i stands for env[i] if env is
  // given, else for variable i of this simplifier.
  Linear ToLinear(Expr e, const std::vector<Linear>* env = nullptr, const LoadFn* load = nullptr);
  Expr ToExpr(const Linear& e);

  // Any expression, simplified; same rules for variables and loads.
  Expr Simplify(Expr e, const std::vector<Linear>* env = nullptr, const LoadFn* load = nullptr);

  // k*c*(x // c) + k*(x % c) -> k*x, wherever the sum holds both; for flattened addresses.
  Linear Recombine(const Linear& e);

 private:
  friend class FactScope;
  // lo <= sum of the terms <= hi; the constant is 0. `e` is the same sum.
  struct Fact {
    Linear sum;
    Interval range;
    Expr e;
  };

  // Adds what the parts of a && b say about sums of indices.
  void Assume(Expr condition);
  Interval RangeByTerms(const Linear& e) const;
  void Narrow(const Linear& e, Interval& range) const;

  Linear Atom(Expr e) const;  // of type kIndex
  Linear IndexAtom(Expr e);   // of any int type
  // The sum in whole numbers, also where the type of e would wrap around.
  Linear SumOf(Expr e, const std::vector<Linear>* env, const LoadFn* load);
  Expr SimplifyComparison(Op op, const Linear& a, const Linear& b);

  ExprPool& pool_;
  std::vector<Interval> ranges_;
  std::vector<Fact> facts_;
};

// A condition of the simplifier's own variables (as Simplify returns it) holds while this lives.
class FactScope {
 public:
  FactScope(Simplifier& simplifier, Expr condition)
      : simplifier_(simplifier), count_(simplifier.facts_.size()) {
    simplifier.Assume(condition);
  }
  ~FactScope() { simplifier_.facts_.resize(count_); }
  FactScope(const FactScope&) = delete;
  FactScope& operator=(const FactScope&) = delete;

 private:
  Simplifier& simplifier_;
  const size_t count_;
};

// The address of an element in a row-major buffer, in elements.
Linear Flatten(Simplifier& simplifier, std::span<const Linear> indices,
               std::span<const int64_t> shape);

}  // namespace kiln::ir
