// A cost model by name: a row of the table in make_cost_model.cc. Each row is defined beside its
// model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"
#include "costmodel/cost_model.h"

namespace kiln::costmodel {

// The parameter of a model that learns: the model does not train with fewer samples.
inline constexpr std::string_view kMinSamples = "min_samples";

struct CostModelOptions {
  uint64_t seed = 0;
  // Version of the columns (features::kFeatureVersion). A model that was saved for another version
  // is not loaded.
  int feature_version = 0;
  // Threads for training. More than one pays only on CPUs that are idle, because XGBoost's threads
  // wait for each other by spinning. The last bits of scores depend on this number.
  int threads = 1;
  // The model does not train with fewer samples, unless its parameters say otherwise. 0: the model
  // chooses.
  int min_samples = 0;
  // Parameters by name, for instance {"max_depth", 6}. A name that the model does not have is an
  // error.
  std::map<std::string, double> parameters = {};
  // Estimates that a model may learn to correct (XgbOptions::estimate).
  std::shared_ptr<const CostModel> estimate = {};
  // Returns how many samples a model that learns may keep now, of so many that it would keep. Any
  // thread calls it. Empty: the model keeps them all.
  std::function<size_t(size_t wanted)> kept_samples = {};
  // When this is requested, a training ends soon, with Cancelled.
  std::stop_token stop = {};
};

struct CostModelKind {
  std::string_view name;
  std::string_view what;  // one line for people
  StatusOr<std::unique_ptr<CostModel>> (*make)(const CostModelOptions& options);
};

}  // namespace kiln::costmodel
