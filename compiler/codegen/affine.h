// What a code generator asks about index expressions: the linear form, the range, the value when
// all variables are known. Plain functions over ir::Expr; no state, no LLVM.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/ir/expr.h"

namespace kiln::codegen {

// coefficient * atom; an atom is a variable or anything that is not a sum of products by constants.
struct Term {
  ir::Expr atom;
  int64_t coefficient;
};

// constant + sum of terms. Every atom occurs once, no coefficient is 0. Terms stand in the order of
// first occurrence.
struct LinearForm {
  int64_t constant = 0;
  std::vector<Term> terms;

  void Add(const LinearForm& other, int64_t factor);
  int64_t Coefficient(ir::Expr atom) const;  // 0 when absent
};

// Value of variable i where it is known (unrolled loops); ids past the end are unknown.
using KnownVars = std::span<const std::optional<int64_t>>;

// Joins (x // c) * c + x % c to x, so that the indices of a fused and re-split loop come out
// contiguous.
LinearForm Linearize(ir::Expr e, KnownVars known);
// The same joining for a sum of linear forms, as a flattened index is.
void JoinQuotients(LinearForm& form, KnownVars known);

// The value of an integer or bool expression without loads whose variables are all known; else
// nothing.
std::optional<int64_t> Evaluate(ir::Expr e, KnownVars known);

// Inclusive. Saturates: an end at the limit of int64 means unknown.
struct Range {
  int64_t lo = INT64_MIN;
  int64_t hi = INT64_MAX;
  bool bounded() const { return lo > INT64_MIN && hi < INT64_MAX; }
  bool operator==(const Range&) const = default;
};
Range AddRanges(Range a, Range b);
Range ScaleRange(Range a, int64_t factor);

// vars: range of variable i. A superset of the values e can take, in the type of exact integers.
Range RangeOf(ir::Expr e, std::span<const Range> vars);
Range RangeOf(const LinearForm& form, std::span<const Range> vars);

}  // namespace kiln::codegen
