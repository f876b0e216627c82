// A model of earlier searches of a template for other computations, with which a new search begins,
// like autotvm's base model (TVM v0.8, XGBoostCostModel.fit_log and load_basemodel of
// python/tvm/autotvm/tuner/xgboost_cost_model.py, ModelBasedTuner.load_history of
// model_based_tuner.py). Trees are trained on points of other computations. The search begins with
// the points that they rank highest; the tuner's own model then learns their errors. The trees
// count less with every result, until they are dropped.
//
// autotvm divides throughputs by the best of all points that it learns from. Here each throughput
// is relative to the best of its own computation, so that small and large computations teach alike.
//
// Immutable; any thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "costmodel/forest.h"
#include "search/templates/tuners/point_forest.h"

namespace kiln::search {

// A point that was measured for another computation.
struct EarlierPoint {
  std::vector<float> features;  // not empty
  float throughput = 0;         // relative to the best of that computation; 0: it failed
};

class BaseModel {
 public:
  // Rows may have different lengths. Cost: about a millisecond for each point.
  static StatusOr<std::shared_ptr<const BaseModel>> Learn(std::span<const EarlierPoint> points,
                                                          const PointLearning& learning);

  // Predicts for rows of columns() floats. Further floats are not read.
  std::vector<float> Predict(std::span<const float* const> rows) const {
    return forest_.Predict(rows);
  }
  int columns() const { return forest_.columns(); }

  // Returns the factor of the predictions for a search that has so many results of its own: it
  // halves with every 64 results, and is 0 once it is small.
  static double Weight(int64_t results);

 private:
  explicit BaseModel(costmodel::Forest forest) : forest_(std::move(forest)) {}
  const costmodel::Forest forest_;
};

}  // namespace kiln::search
