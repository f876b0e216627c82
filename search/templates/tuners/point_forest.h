// Boosted trees that tell fast points of a template from slow ones, with autotvm's parameters of
// XGBoost (TVM v0.8, python/tvm/autotvm/tuner/xgboost_cost_model.py).
//
// Pure function. The same input gives the same trees.
#pragma once

#include <span>
#include <stop_token>

#include "base/float_matrix.h"
#include "base/status.h"
#include "costmodel/forest.h"

namespace kiln::search {

struct PointLearning {
  // Throughput relative to the best: its square error, or the order of pairs.
  bool rank_loss = false;
  std::stop_token stop = {};  // requested: Cancelled, soon
};

// A row for each point, with its throughput relative to the best, 0 where it failed. `estimates`:
// what is known of each beforehand; the trees give what they are off by. Empty: nothing.
// Without trees: all points look alike.
StatusOr<costmodel::Forest> LearnPoints(const FloatMatrix& rows, std::span<const float> throughputs,
                                        std::span<const float> estimates,
                                        const PointLearning& learning);

}  // namespace kiln::search
