// Recognizes products of rows by their softmax. These computations
//
//   S = sum over k of Q*K      X = S*scale + mask, ...     M = max over n of X
//   P = exp(X - M)             L = sum over n of P         O = sum over n of P*V
//   out = O / L
//
// can be computed by one kernel that visits the keys n once, a tile at a time, with the maximum and
// the sum so far (the online softmax: Milakov, Gimelshein 2018; FlashAttention: Dao et al. 2022).
// The DAG decides, not names: stages without a reduction are written out, so that their number,
// their names and the order of their axes do not matter. Inputs may be read at any places. Numbers
// that multiply Q or K are combined into one that multiplies S. Pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"

namespace kiln::dag {

// All expressions are of one pool and over the same variables: the output's axes by number, then
// `key` and `depth`. The slots of their loads are operators of the DAG.
struct SoftmaxChain {
  std::shared_ptr<ir::ExprPool> pool;
  // Indexed by variable.
  std::vector<int64_t> extents;
  // Operators: all reductions, and the output, which may be the last of the reductions.
  int scores = -1, maximum = -1, total = -1, weighted = -1, output = -1;
  // Variables: a row of scores, a column of the values, a key, and a term of a score. The variables
  // in `batch` number independent problems.
  int32_t row = -1, column = -1, key = -1, depth = -1;
  std::vector<int32_t> batch;

  // A term of S: a product of `query` and `keys`, converted.
  ir::Expr score_term = nullptr;
  // Loads of placeholders.
  ir::Expr query = nullptr, keys = nullptr;
  // X as an expression of a load of S, in float32. Roundings to 16 bits between its stages are left
  // out.
  ir::Expr logit = nullptr;
  // exp(X - M), from which the next two terms are made.
  ir::Expr exponential = nullptr;
  // A term of L, converted from the exponential.
  ir::Expr total_term = nullptr;
  // A term of O: a product of `weight` and `values`, converted.
  ir::Expr value_term = nullptr;
  // The weight that is multiplied, with its last rounding: a conversion of the exponential.
  ir::Expr weight = nullptr;
  // A load of a placeholder.
  ir::Expr values = nullptr;
  // The output as an expression of loads of O and L.
  ir::Expr result = nullptr;
  // True if the DAG divides weights by L before it multiplies them. `result` then divides O by L
  // instead. The DAG may put 0 in place of divided weights that are NaN. Then all weights of a row
  // are NaN or none: L is not above 0, and `result` is 0.
  bool is_normalized_before = false;

  // Keys after row + *last_key, which is at least 0, have no weight: their logit is so low that its
  // exponential is 0. The logit is then a choice between two expressions, and `seen_logit` is that
  // of the other keys.
  std::optional<int64_t> last_key = {};
  // Null if there is no last key.
  ir::Expr seen_logit = nullptr;

  int64_t extent(int32_t var) const { return extents[static_cast<size_t>(var)]; }
};

// Returns NotFound with the reason if the DAG is no such chain. Cost: some tens of microseconds; a
// DAG of another shape is refused at once.
StatusOr<SoftmaxChain> FindSoftmaxChain(const Dag& dag);

}  // namespace kiln::dag
