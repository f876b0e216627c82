#include "search/policies/models.h"

#include <functional>
#include <utility>

#include "compiler/features/features.h"
#include "costmodel/analytic_model.h"
#include "costmodel/make_cost_model.h"
#include "costmodel/mean_model.h"
#include "search/policies/policy.h"

namespace kiln::search {
namespace {

// Few samples are enough, because the model only corrects estimates.
constexpr int kFewSamples = 16;
// The rounds of a job of many tasks are short, and all of them teach one model. It does not rank
// better if it is trained twice as often (docs/experiments/search.md).
constexpr double kStepGrowth = 0.1;

// Returns the bound of a model's samples. Empty: there is none.
std::function<size_t(size_t)> BoundOf(KeptAllowance* samples) {
  if (samples == nullptr) return {};
  // Functions are copied, shares are not.
  auto share = std::make_shared<const KeptAllowance::Share>(samples->Take());
  return [share](size_t wanted) { return share->Of(wanted); };
}

// The parameters of `more` are set besides those that the model was trained with.
StatusOr<TrainedModel> Open(const costmodel::ModelFile& file, uint64_t seed,
                            const std::stop_token& stop, const LearningOptions& more) {
  const costmodel::ModelInfo& info = file.info;
  KILN_RETURN_IF_ERROR(
      costmodel::CheckColumns(info, features::kFeatureVersion, features::FeatureNames()));
  costmodel::CostModelOptions options = {.seed = seed,
                                         .feature_version = features::kFeatureVersion,
                                         .min_samples = kFewSamples,
                                         .parameters = info.parameters,
                                         .kept_samples = BoundOf(more.samples),
                                         .stop = stop};
  for (const auto& [name, value] : more.parameters) options.parameters[name] = value;
  if (!info.calibration.empty()) {
    KILN_ASSIGN_OR_RETURN(const device::Calibration constants,
                          device::ParseCalibration(info.calibration));
    KILN_ASSIGN_OR_RETURN(options.estimate,
                          costmodel::AnalyticModel::Make(features::FeatureNames(), constants));
  }
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<costmodel::CostModel> model,
                        costmodel::MakeCostModel(info.kind, options));
  KILN_RETURN_IF_ERROR(model->Load(file.model));
  return TrainedModel{info, std::move(model)};
}

}  // namespace

StatusOr<TrainedModel> OpenTrainedModel(const costmodel::ModelFile& file, uint64_t seed,
                                        const std::stop_token& stop) {
  return Open(file, seed, stop, {});
}

StatusOr<Models> MakeModels(std::string_view policy, uint64_t seed,
                            const device::Calibration& device, const std::stop_token& stop,
                            const LearningOptions& options) {
  KILN_ASSIGN_OR_RETURN(const PolicyKind* const kind, FindPolicy(policy));
  Models models;
  if (kind->uses_analytic_model) {
    KILN_ASSIGN_OR_RETURN(models.prior,
                          costmodel::AnalyticModel::Make(features::FeatureNames(), device));
  }
  if (kind->weighs_builds) {
    KILN_ASSIGN_OR_RETURN(models.builds,
                          costmodel::BuildModel::Make(features::FeatureNames(), seed, stop));
  }
  const bool given = options.trained != nullptr || !options.parameters.empty();
  if (kind->learned_model.empty()) {
    if (!given) return models;
    return InvalidArgument(
        "policy {} learns with no cost model of schedules, and the job gives one", policy);
  }
  if (options.trained != nullptr) {
    if (options.trained->info.kind != kind->learned_model) {
      return InvalidArgument("policy {} learns with a model {}, and the job gives one of kind {}",
                             policy, kind->learned_model, options.trained->info.kind);
    }
    KILN_ASSIGN_OR_RETURN(const TrainedModel trained, Open(*options.trained, seed, stop, options));
    models.learned = trained.model;
    // The blended model needs scores of one unit.
    if (!trained.gives_seconds()) return models;
  } else {
    std::map<std::string, double> parameters = options.parameters;
    parameters.try_emplace("step_growth", kStepGrowth);
    KILN_ASSIGN_OR_RETURN(
        models.learned,
        costmodel::MakeCostModel(kind->learned_model, {.seed = seed,
                                                       .feature_version = features::kFeatureVersion,
                                                       .min_samples = kFewSamples,
                                                       .parameters = std::move(parameters),
                                                       .estimate = models.prior,
                                                       .kept_samples = BoundOf(options.samples),
                                                       .stop = stop}));
  }
  if (models.prior != nullptr)
    models.blended = std::make_shared<costmodel::MeanModel>(models.learned, models.prior);
  return models;
}

}  // namespace kiln::search
