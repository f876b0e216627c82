// A model's prediction for a schedule: for the whole program, and for each of its stages.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/schedule/step.h"
#include "search/policies/models.h"
#include "search/space/task.h"

namespace kiln::training {

// A store of the program, which has a row of features.
struct RowPrediction {
  std::string kernel;
  std::string stage;
  std::string buffer;  // the buffer that it writes
  double score = 0;    // score of CostModel::PredictRows

  friend bool operator==(const RowPrediction&, const RowPrediction&) = default;
};

// All stores of a stage within a kernel.
struct StagePrediction {
  std::string kernel;
  std::string stage;
  double score = 0;  // the sum of its rows' scores
  // Share of the program's predicted time. None if scores are no times.
  std::optional<double> share;

  friend bool operator==(const StagePrediction&, const StagePrediction&) = default;
};

struct Prediction {
  double score = 0;               // higher is faster
  std::optional<double> seconds;  // none: the score is a throughput relative to the best
  std::vector<RowPrediction> rows;
  std::vector<StagePrediction> stages;  // in the order of the program
};

// Refuses steps that do not replay or lower, with the reason.
StatusOr<Prediction> Predict(const search::TrainedModel& model, const search::Task& task,
                             std::span<const schedule::StepPtr> steps);

}  // namespace kiln::training
