// Trains boosted trees that tell fast points of a template from slow ones, with autotvm's
// parameters of XGBoost (TVM v0.8, python/tvm/autotvm/tuner/xgboost_cost_model.py).
//
// Pure function. The same input gives the same trees.
#pragma once

#include <span>
#include <stop_token>

#include "base/numbers/float_matrix.h"
#include "base/status.h"
#include "costmodel/forest.h"

namespace kiln::search {

struct PointLearning {
  // The loss for the throughput relative to the best: the order of pairs, or else the square error.
  bool rank_loss = false;
  std::stop_token stop = {};  // requested: returns Cancelled soon
};

// There is a row for each point, and its throughput relative to the best, or 0 if it failed.
// `estimates` are earlier estimates of the throughputs, whose errors the trees learn; may be empty.
// A forest without trees means that all points look alike.
StatusOr<costmodel::Forest> LearnPoints(const FloatMatrix& rows, std::span<const float> throughputs,
                                        std::span<const float> estimates,
                                        const PointLearning& learning);

}  // namespace kiln::search
