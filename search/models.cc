#include "search/models.h"

#include "compiler/features/features.h"
#include "costmodel/analytic_model.h"
#include "costmodel/make_cost_model.h"
#include "costmodel/mean_model.h"

namespace kiln::search {
namespace {

// As it corrects estimates, it learns from few.
constexpr double kFewSamples = 16;

}  // namespace

StatusOr<Models> MakeModels(std::string_view policy, uint64_t seed,
                            const device::Calibration& device, const std::stop_token& stop) {
  Models models;
  if (policy == "sketch.xgb" || policy == "sketch.analytic") {
    KILN_ASSIGN_OR_RETURN(models.draft,
                          costmodel::AnalyticModel::Make(features::FeatureNames(), device));
  }
  if (policy == "sketch.xgb") {
    KILN_ASSIGN_OR_RETURN(models.learned, costmodel::MakeCostModel(
                                              "xgb", {.seed = seed,
                                                      .feature_version = features::kFeatureVersion,
                                                      .parameters = {{"min_samples", kFewSamples}},
                                                      .estimate = models.draft,
                                                      .stop = stop}));
    models.half_way = std::make_shared<costmodel::MeanModel>(models.learned, models.draft);
  }
  return models;
}

}  // namespace kiln::search
