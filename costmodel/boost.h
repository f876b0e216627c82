// Gradient boosting of trees by XGBoost's C API: a training set in, trees out.
//
// No state: any number of threads may boost at once, each with its own threads. The same input,
// seed and number of threads give the same trees. XGBoost's own messages go to our log (debug).
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "costmodel/forest.h"
#include "costmodel/training_set.h"

namespace kiln::costmodel {

// Names and meanings are XGBoost's where it has them.
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
  // Stops when `patience` rounds made the loss smaller by less than this share.
  int patience = 10;
  double min_gain = 0.01;
  int threads = 1;
  uint64_t seed = 43;
  // Requested: Boost returns Cancelled before the next round.
  std::stop_token stop = {};
};

// Adds to `forest` the trees that bring its outputs closer to the targets. On error it is as
// before.
Status Boost(const TrainingSet& set, const BoostOptions& options, Forest& forest);

std::string XgboostVersion();  // "1.7.4", of the library that is loaded

}  // namespace kiln::costmodel
