// Gradient boosting of trees by XGBoost's C API: takes a training set and adds trees.
//
// There is no state: any number of threads may boost at once, each with its own threads. The same
// input, seed and number of threads give the same trees. XGBoost's own messages go to Kiln's log
// (debug).
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "costmodel/boost_input.h"
#include "costmodel/forest.h"

namespace kiln::costmodel {

// Options that XGBoost has too keep its names and meanings.
struct BoostOptions {
  Objective objective = Objective::kTime;
  int max_depth = 6;
  double gamma = 0.001;
  double min_child_weight = 0;
  double eta = 0.2;
  double lambda = 1;
  double colsample_bynode = 0.3;
  double subsample = 1;
  int max_bin = 64;
  int max_rounds = 200;
  // Stops when the last `patience` rounds reduced the loss by less than the share `min_gain`.
  int patience = 10;
  double min_gain = 0.01;
  int threads = 1;
  uint64_t seed = 43;
  // When this is requested, Boost returns Cancelled before the next round.
  std::stop_token stop = {};
};

// Adds to `forest` the trees that bring its outputs closer to the targets. On error the forest is
// as before.
Status Boost(const BoostInput& set, const BoostOptions& options, Forest& forest);

std::string XgboostVersion();  // "1.7.4", of the loaded library

}  // namespace kiln::costmodel
