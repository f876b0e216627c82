// Ranges of sums that follow from conditions: if i + j < 10 holds, then i + j lies in -oo .. 9.
//
// A fact is about a sum of at least one term. An analysis may instead keep a fact about a single
// variable as the range of that variable.
#pragma once

#include <utility>
#include <vector>

#include "compiler/arith/interval.h"
#include "compiler/arith/linear.h"

namespace kiln::arith {

struct Fact {
  // Has no constant and does not overflow.
  Linear sum;
  Interval range;
  // The same sum as an expression, or null if it is not at hand.
  ir::Expr expr = nullptr;
};

// Returns the fact that `difference` compared with 0 is true.
inline Fact FactOf(ir::Op comparison, Linear difference) {
  const Interval constant = Interval::Of(std::exchange(difference.constant, 0));
  return {std::move(difference), DifferenceWhere(comparison) - constant};
}

class Facts {
 public:
  void Add(Fact fact) { facts_.push_back(std::move(fact)); }
  bool empty() const { return facts_.empty(); }
  size_t size() const { return facts_.size(); }
  void Truncate(size_t size) { facts_.resize(size); }
  auto begin() const { return facts_.begin(); }
  auto end() const { return facts_.end(); }

  // Returns `range`, the range of the form, made smaller by each fact whose terms are all in the
  // form: form = k*sum + rest. range_of_rest gives the range of a Linear. If facts contradict each
  // other, some are ignored.
  template <typename RangeOfRest>
  Interval Narrow(const Linear& form, Interval range, RangeOfRest&& range_of_rest) const;

 private:
  std::vector<Fact> facts_;
};

// ---- implementation of templates

template <typename RangeOfRest>
Interval Facts::Narrow(const Linear& form, Interval range, RangeOfRest&& range_of_rest) const {
  if (form.overflow) return range;
  for (const Fact& fact : facts_) {
    const Term& lead = fact.sum.terms[0];
    const int64_t coefficient = form.Coefficient(lead.atom);
    // INT64_MIN has no negative.
    if (coefficient == 0 || coefficient == INT64_MIN) continue;
    if (coefficient % lead.coefficient != 0) continue;
    const int64_t k = coefficient / lead.coefficient;
    Linear rest = form;
    rest.AddScaled(fact.sum, -k);
    if (rest.terms.size() + fact.sum.terms.size() != form.terms.size()) continue;
    const Interval narrowed = Intersect(range, fact.range * k + range_of_rest(rest));
    if (!narrowed.empty()) range = narrowed;
  }
  return range;
}

}  // namespace kiln::arith
