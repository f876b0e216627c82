// A cost model by name: a row of the table in make_cost_model.cc. The row stands beside the model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

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
  // No training with fewer; 0: as the model chooses.
  int min_samples = 0;
  // By name, for instance {"max_depth", 6}; those a model does not have are an error.
  std::map<std::string, double> parameters = {};
  // What a model that learns may correct (XgbOptions::estimate).
  std::shared_ptr<const CostModel> estimate = {};
  // Requested: a training ends soon, with Cancelled.
  std::stop_token stop = {};
};

struct CostModelKind {
  std::string_view name;
  std::string_view what;  // for people, one line
  StatusOr<std::unique_ptr<CostModel>> (*make)(const CostModelOptions& options);
};

}  // namespace kiln::costmodel
