// Products of rows by their softmax: which computations are
//
//   S = sum over k of Q*K      X = S*scale + mask, ...     M = max over n of X
//   P = exp(X - M)             L = sum over n of P         O = sum over n of P*V
//   out = O / L
//
// and so can be computed by one kernel that visits the keys n once, a tile at a time, with the
// maximum and the sum so far (the online softmax: Milakov, Gimelshein 2018; FlashAttention: Dao et
// al. 2022). It goes by the DAG, not by names: stages without a reduction are written out, so that
// it is all the same how many there are, what they are called, and in which order they have their
// axes. Inputs may be read at any places; numbers that Q or K is multiplied with become one that S
// is. Pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"

namespace kiln::dag {

// Expressions are of one pool, over the same variables: those of the output's axes by number, then
// `key` and `depth`. Their loads have operators of the DAG for slots.
struct SoftmaxChain {
  std::shared_ptr<ir::ExprPool> pool;
  std::vector<int64_t> extents;  // [variable]
  // Operators: all that reduce, and the output, which may be the last one of these.
  int scores = -1, maximum = -1, total = -1, weighted = -1, output = -1;
  // Variables: a row of scores, a column of the values, a key, a term of a score. What is left
  // numbers problems that have nothing in common.
  int32_t row = -1, column = -1, key = -1, depth = -1;
  std::vector<int32_t> batch;

  ir::Expr score_term = nullptr;             // of S: a product of `query` and `keys`, converted
  ir::Expr query = nullptr, keys = nullptr;  // loads of placeholders
  // X of a load of S, in float32: what is rounded to 16 bits between its stages is not rounded.
  ir::Expr logit = nullptr;
  ir::Expr exponential = nullptr;  // exp(X - M): what the next two are made of
  ir::Expr total_term = nullptr;   // of L, converted from the exponential
  ir::Expr value_term = nullptr;   // of O: a product of `weight` and `values`, converted
  // The weight as it is multiplied, as it was rounded last: a conversion of the exponential.
  ir::Expr weight = nullptr;
  ir::Expr values = nullptr;  // a load of a placeholder
  ir::Expr result = nullptr;  // of loads of O and L
  // The DAG divides weights by L before it multiplies them: its O is the quotient of O and L here.
  bool is_normalized_before = false;

  // Keys after row + *last_key, which is at least 0, have no weight: their logit is so low that its
  // exponential is 0. Such a logit is a choice between two expressions, of which `seen_logit` is that
  // of the other keys.
  std::optional<int64_t> last_key = {};
  ir::Expr seen_logit = nullptr;  // null where there is no last key

  int64_t extent(int32_t var) const { return extents[static_cast<size_t>(var)]; }
};

// NotFound: why the DAG is none. Cost: some tens of microseconds; a DAG of another shape is refused
// at once.
StatusOr<SoftmaxChain> FindSoftmaxChain(const Dag& dag);

}  // namespace kiln::dag
