// The cost models that the policies of one job share, and call one after the other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"
#include "costmodel/cost_model.h"
#include "costmodel/model_file.h"
#include "device/calibration.h"

namespace kiln::search {

struct Models {
  // What sketch.xgb learns with and ranks by.
  std::shared_ptr<costmodel::CostModel> learned = {};
  // Ranks while `learned` is not trained, and always for sketch.analytic. Without one, candidates
  // are random until `learned` is trained.
  std::shared_ptr<const costmodel::CostModel> prior = {};
  // The mean of the two. It ranks every other round while a task has few results: the learned model
  // alone would reject schedules only because similar ones were slow. May be null.
  std::shared_ptr<const costmodel::CostModel> blended = {};
};

// The model of a file, ready to rank and to learn more. FailedPrecondition: it was trained on other
// feature columns than those of compiler/features; DataLoss: damaged.
struct TrainedModel {
  costmodel::ModelInfo info;
  std::shared_ptr<costmodel::CostModel> model;
  // Scores are minus the seconds of a program; otherwise its throughput relative to the best one.
  bool gives_seconds() const { return !info.calibration.empty(); }
};
StatusOr<TrainedModel> OpenTrainedModel(const costmodel::ModelFile& file, uint64_t seed = 0,
                                        const std::stop_token& stop = {});

struct LearningOptions {
  // Where the search begins: what it learns is added. Null: nothing is learned yet. InvalidArgument
  // for a policy that learns with no model of its kind.
  const costmodel::ModelFile* trained = nullptr;
  // Of the learned model, by name (costmodel/xgb_model.h); with `trained` beside those of its
  // training.
  std::map<std::string, double> parameters = {};
};

// What the policy of that name needs (PolicyKind); InvalidArgument where there is none. The
// analytic model is one of a device with these constants. Reads the columns of compiler/features.
// Once `stop` is requested, trainings end soon and teach nothing.
StatusOr<Models> MakeModels(std::string_view policy, uint64_t seed,
                            const device::Calibration& device = {},
                            const std::stop_token& stop = {}, const LearningOptions& options = {});

}  // namespace kiln::search
