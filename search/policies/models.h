// The cost models that the policies of one job share. The policies call them one after the other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"
#include "costmodel/build_model.h"
#include "costmodel/cost_model.h"
#include "costmodel/model_file.h"
#include "device/calibration.h"
#include "search/policies/kept_allowance.h"

namespace kiln::search {

struct Models {
  // The model that sketch.xgb trains and ranks by.
  std::shared_ptr<costmodel::CostModel> learned = {};
  // Ranks while `learned` is not trained, and always for sketch.analytic. If null, candidates are
  // random until `learned` is trained.
  std::shared_ptr<const costmodel::CostModel> prior = {};
  // The mean of the two models. The blended model ranks every other round while a task has few
  // results: the learned model alone would reject schedules only because similar ones were slow.
  // May be null.
  std::shared_ptr<const costmodel::CostModel> blended = {};
  // Predicts how long builds for a GPU take, and learns from them. Null: they count alike.
  std::shared_ptr<costmodel::BuildModel> builds = {};
};

// The model of a file, ready to rank and to learn more. FailedPrecondition if it was trained on
// other feature columns than those of compiler/features. DataLoss if the file is damaged.
struct TrainedModel {
  costmodel::ModelInfo info;
  std::shared_ptr<costmodel::CostModel> model;
  // If true, scores are minus the seconds of a program; otherwise its throughput relative to the
  // best one.
  bool gives_seconds() const { return !info.calibration.empty(); }
};
StatusOr<TrainedModel> OpenTrainedModel(const costmodel::ModelFile& file, uint64_t seed = 0,
                                        const std::stop_token& stop = {});

struct LearningOptions {
  // The model that the search begins with, and goes on to train. Null: the learned model begins
  // untrained. InvalidArgument if the policy does not learn with a model of this kind.
  const costmodel::ModelFile* trained = nullptr;
  // Parameters of the learned model by name (costmodel/xgb_model.h). These are added to the
  // parameters that `trained` was trained with.
  std::map<std::string, double> parameters = {};
  // Bounds the samples that all learned models keep together. Outlives the models. Null: each keeps
  // as many as its parameters say.
  KeptAllowance* samples = nullptr;
};

// Makes the models that the policy of that name needs (PolicyKind). InvalidArgument if there is no
// such policy. The analytic model is for a device with these constants. Reads the columns of
// compiler/features. After `stop` is requested, a training ends soon and has no effect.
StatusOr<Models> MakeModels(std::string_view policy, uint64_t seed,
                            const device::Calibration& device = {},
                            const std::stop_token& stop = {}, const LearningOptions& options = {});

}  // namespace kiln::search
