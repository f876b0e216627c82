#include "search/policies/template_features.h"

#include "compiler/lower/lower.h"
#include "search/templates/curve_features.h"
#include "search/templates/loop_features.h"
#include "search/templates/tuners/model_tuner.h"

namespace kiln::search {

FeatureChoice FeaturesOf(const Parameters& parameters) {
  return {.curves = parameters.template_curve_features,
          .loops = parameters.template_itervar_features};
}

// Features of curves stand before those of loops, because rows of loops vary in length.
std::vector<float> FeaturesOfInstance(const FeatureChoice& choice, const Task& task,
                                      const Config& config, const Instance& instance) {
  std::vector<float> row = KnobFeatures(config);
  if (!choice.carries_over() || !instance.state) return row;
  const StatusOr<ir::Program> program =
      lower::Lower(*instance.state, {.gpu = task.target.is_gpu(), .stop = task.stop});
  if (!program.ok()) return {};
  const auto add = [&row](const std::vector<float>& more) {
    row.insert(row.end(), more.begin(), more.end());
  };
  if (choice.curves) add(CurveFeatures(*program));
  if (choice.loops) add(LoopFeatures(*program));
  return row;
}

std::vector<float> FeaturesOfPoint(const FeatureChoice& choice, const Template& schedule_template,
                                   const Task& task, const Config& config) {
  if (!choice.carries_over()) return KnobFeatures(config);
  const StatusOr<Instance> instance = schedule_template.Instantiate(task.dag, config);
  if (!instance.ok()) return {};
  return FeaturesOfInstance(choice, task, config, *instance);
}

Status CheckHistoryFeatures(const std::map<std::string, double>& given) {
  const auto asked = given.find("template_history");
  if (asked == given.end() || asked->second == 0) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const Parameters parameters, MakeParameters(given));
  if (FeaturesOf(parameters).carries_over()) return OkStatus();
  return InvalidArgument(
      "template_history is 1, but the model sees knob values alone, which say nothing of other "
      "computations: set template_curve_features or template_itervar_features to 1, or "
      "template_history to 0");
}

}  // namespace kiln::search
