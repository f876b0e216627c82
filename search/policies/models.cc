#include "search/policies/models.h"

#include "compiler/features/features.h"
#include "costmodel/analytic_model.h"
#include "costmodel/make_cost_model.h"
#include "costmodel/mean_model.h"
#include "search/policies/policy.h"

namespace kiln::search {
namespace {

// As it corrects estimates, it learns from few.
constexpr int kFewSamples = 16;

}  // namespace

StatusOr<Models> MakeModels(std::string_view policy, uint64_t seed,
                            const device::Calibration& device, const std::stop_token& stop) {
  KILN_ASSIGN_OR_RETURN(const PolicyKind* const kind, FindPolicy(policy));
  Models models;
  if (kind->uses_analytic_model) {
    KILN_ASSIGN_OR_RETURN(models.prior,
                          costmodel::AnalyticModel::Make(features::FeatureNames(), device));
  }
  if (kind->learned_model.empty()) return models;
  KILN_ASSIGN_OR_RETURN(
      models.learned,
      costmodel::MakeCostModel(kind->learned_model, {.seed = seed,
                                                     .feature_version = features::kFeatureVersion,
                                                     .min_samples = kFewSamples,
                                                     .estimate = models.prior,
                                                     .stop = stop}));
  if (models.prior != nullptr)
    models.blended = std::make_shared<costmodel::MeanModel>(models.learned, models.prior);
  return models;
}

}  // namespace kiln::search
