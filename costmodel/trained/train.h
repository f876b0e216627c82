// A cost model out of records, as a file: trained on a lesson, tested on what was held out of it.
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
#include "costmodel/trained/lesson.h"
#include "device/calibration.h"

namespace kiln::costmodel {

enum class Split {
  kRecords,       // some records of each computation
  kComputations,  // whole computations, on all of their devices
};

struct TrainOptions {
  uint64_t seed = 1;
  std::map<std::string, double> parameters = {};  // of the model (costmodel/xgb_model.h)
  // The trees correct the analytic model with these constants; none: they stand alone.
  std::optional<device::Calibration> estimates = device::Calibration();
  // The share that the model does not see, in [0, 0.9]. What of it is held out is decided by the
  // seed for each record or computation by itself, so that a larger store holds out the same ones.
  // Of fewer than 64 programs, by records, nothing is held out if it is not 0: each is tested by a
  // model of four fifths of the others (HeldOut::turns).
  double held_out = 0.2;
  Split split = Split::kRecords;
  int k = 10;  // of recall and peak
  std::vector<std::string> sources = {};
  int64_t now_s = 0;
  std::stop_token stop = {};  // requested: Cancelled soon
};

// InvalidArgument: no programs, or of CPUs and GPUs at once; a parameter that the model does not
// have; FailedPrecondition: fewer than 4 programs, or none held out or left to learn from. Cost: seconds
// for some thousand programs (docs/cost-models.md).
StatusOr<ModelFile> Train(const Lesson& lesson, const TrainOptions& options);

// How well a model ranks the programs of each task that worked; of the tasks with at least
// kFewestRanked of them.
std::vector<TaskQuality> QualityOf(const CostModel& model, const Lesson& lesson, int k);

}  // namespace kiln::costmodel
