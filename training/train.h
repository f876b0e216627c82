// Trains a cost model on records and makes a file of it. The model is trained on a part of a
// training set, and tested on the part that was held out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "costmodel/cost_model.h"
#include "costmodel/model_file.h"
#include "device/calibration.h"
#include "training/training_set.h"

namespace kiln::training {

enum class Split {
  kRecords,       // some records of each computation
  kComputations,  // whole computations, on all of their devices
};

struct TrainOptions {
  uint64_t seed = 1;
  std::map<std::string, double> parameters = {};  // parameters of the model (costmodel/xgb_model.h)
  // The trees correct the analytic model with these constants. None: the trees stand alone.
  std::optional<device::Calibration> estimates = device::Calibration();
  // The share that is held out from the model, in [0, 0.9]. The seed decides for each record or
  // computation by itself, so that a larger store holds out the same ones. If there are fewer than
  // 64 programs, by records, and the share is not 0, nothing is held out: each program is tested by
  // a model of four fifths of the others (HeldOut::turns).
  double held_out = 0.2;
  Split split = Split::kRecords;
  int k = 10;  // for recall and peak
  std::vector<std::string> sources = {};
  int64_t now_s = 0;
  std::stop_token stop = {};  // requested: returns Cancelled soon
};

// InvalidArgument: there are no programs; the programs are for CPUs and GPUs at once; or the model
// does not have a parameter. FailedPrecondition: there are fewer than 4 programs, or none is held
// out or left to learn from. Cost: seconds for some thousand programs (docs/cost-models.md).
StatusOr<costmodel::ModelFile> Train(const TrainingSet& set, const TrainOptions& options);

// Returns how well a model ranks the programs of each task that worked, for tasks with at least
// kMinRanked such programs.
std::vector<costmodel::TaskQuality> QualityOf(const costmodel::CostModel& model,
                                              const TrainingSet& set, int k);

}  // namespace kiln::training
