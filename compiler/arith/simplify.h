// Exact simplification of quasi-affine index arithmetic.
//
// A Simplifier knows the range of every variable (loops run from 0 to extent-1). It uses the ranges
// to decide comparisons and to take quotients and remainders apart:
//   (c*q + r) // c = q        if 0 <= r < c
//   (c*q + r) %  c = r        if 0 <= r < c
//   (g*q + r) // (g*c) = q//c if 0 <= r < g
//
// Conditions that hold make ranges smaller: a FactScope gives the simplifier a condition, for as
// long as the scope lives.
//
// Cost: proportional to the terms; no allocation for sums of up to six terms. One thread at a time,
// like its pool.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "compiler/arith/facts.h"
#include "compiler/arith/interval.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/expr.h"

namespace kiln::arith {

class Simplifier {
 public:
  explicit Simplifier(ir::ExprPool& pool) : pool_(pool) {}

  ir::ExprPool& pool() { return pool_; }

  // Declares the variable of the next number, with the values 0 .. extent-1.
  int32_t AddVar(int64_t extent);
  int num_vars() const { return static_cast<int>(ranges_.size()); }
  Linear Var(int32_t id);

  Interval RangeOf(const Linear& e) const;
  // The expression must be an integer.
  Interval RangeOf(ir::Expr e) const;

  // divisor > 0.
  Linear FloorDiv(const Linear& a, int64_t divisor);
  Linear FloorMod(const Linear& a, int64_t divisor);

  // Returns the replacement for a load in the expression. Without such a function loads stay.
  using LoadFn = absl::FunctionRef<ir::Expr(ir::Expr load)>;

  // Returns an expression of any int type as a sum of kIndex terms. Variable i stands for env[i] if
  // env is given, else for variable i of this simplifier.
  Linear ToLinear(ir::Expr e, const std::vector<Linear>* env = nullptr,
                  const LoadFn* load = nullptr);
  ir::Expr ToExpr(const Linear& e);

  // Simplifies any expression, with the same rules for variables and loads.
  ir::Expr Simplify(ir::Expr e, const std::vector<Linear>* env = nullptr,
                    const LoadFn* load = nullptr);

  // Replaces k*c*(x // c) + k*(x % c) by k*x if the sum has both terms. For flattened addresses.
  Linear Recombine(const Linear& e);

 private:
  friend class FactScope;

  // Adds the facts about sums of indices that follow from the parts of a && b.
  void Assume(ir::Expr condition);
  Interval RangeByTerms(const Linear& e) const;
  std::optional<QuotientPair> FindPair(const Linear& sum);

  // The expression has type kIndex.
  Linear Atom(ir::Expr e) const;
  // The expression has any int type.
  Linear IndexAtom(ir::Expr e);
  // Returns the exact sum, even if the type of e would wrap around.
  Linear SumOf(ir::Expr e, const std::vector<Linear>* env, const LoadFn* load);
  ir::Expr SimplifyComparison(ir::Op op, Linear left, Linear right);

  ir::ExprPool& pool_;
  std::vector<Interval> ranges_;
  Facts facts_;
};

// A condition on the simplifier's own variables (as Simplify returns it) holds while this object
// lives.
class FactScope {
 public:
  FactScope(Simplifier& simplifier, ir::Expr condition)
      : simplifier_(simplifier), count_(simplifier.facts_.size()) {
    simplifier.Assume(condition);
  }
  ~FactScope() { simplifier_.facts_.Truncate(count_); }
  FactScope(const FactScope&) = delete;
  FactScope& operator=(const FactScope&) = delete;

 private:
  Simplifier& simplifier_;
  const size_t count_;
};

// Returns the address of an element in a row-major buffer, in elements.
Linear Flatten(Simplifier& simplifier, std::span<const Linear> indices,
               std::span<const int64_t> shape);

}  // namespace kiln::arith
