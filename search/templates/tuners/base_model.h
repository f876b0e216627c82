// What earlier searches of a template teach a new one for another computation, as the base model of
// autotvm (TVM v0.8, XGBoostCostModel.fit_log and load_basemodel of
// python/tvm/autotvm/tuner/xgboost_cost_model.py, ModelBasedTuner.load_history of
// model_based_tuner.py): trees are trained on points of other computations. The first points are
// those that they rank highest; the tuner's own model then learns what they are off by, and they
// count less with every result, until they are dropped.
//
// autotvm divides throughputs by the best of all that it learns from; here each is one relative to
// the best of its own computation, so that small and large ones teach alike.
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
  // Rows may be of several lengths. Cost: about a millisecond for each point.
  static StatusOr<std::shared_ptr<const BaseModel>> Learn(std::span<const EarlierPoint> points,
                                                          const PointLearning& learning);

  // Of rows of columns() floats; what is beyond is not read.
  std::vector<float> Predict(std::span<const float* const> rows) const {
    return forest_.Predict(rows);
  }
  int columns() const { return forest_.columns(); }

  // What its predictions are multiplied with where a search has so many results of its own: one half
  // for every 64, and nothing once that is little.
  static double Weight(int64_t results);

 private:
  explicit BaseModel(costmodel::Forest forest) : forest_(std::move(forest)) {}
  const costmodel::Forest forest_;
};

}  // namespace kiln::search
