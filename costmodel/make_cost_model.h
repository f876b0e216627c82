// Cost models by name.
#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "costmodel/cost_model.h"

namespace kiln::costmodel {

struct CostModelOptions {
  uint64_t seed = 0;
  // What the columns mean (features::kFeatureVersion): a model saved for others is not loaded.
  int feature_version = 0;
  // For training. More than one pays only where those CPUs are idle: XGBoost's threads wait for
  // each other by spinning. Scores depend on it in the last bits.
  int threads = 1;
  // By name, for instance {"max_depth", 6}; those a model does not have are an error.
  std::map<std::string, double> parameters = {};
  // XgbOptions::estimate.
  std::shared_ptr<const CostModel> estimate = {};
  // Requested: a training ends soon, with Cancelled.
  std::stop_token stop = {};
};

// "xgb", "random". An unknown name or parameter: error with the list of known ones.
StatusOr<std::unique_ptr<CostModel>> MakeCostModel(std::string_view name,
                                                   const CostModelOptions& options = {});
std::vector<std::string> CostModelNames();

}  // namespace kiln::costmodel
