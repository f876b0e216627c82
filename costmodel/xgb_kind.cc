#include "costmodel/xgb_kind.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "costmodel/xgb_model.h"

namespace kiln::costmodel {
namespace {

struct Parameter {
  std::string_view name;
  double min, max;
  std::function<void(XgbOptions&, double)> set;
};

template <typename T>
auto Sets(T BoostOptions::* field) {
  return [field](XgbOptions& o, double value) { o.boost.*field = static_cast<T>(value); };
}
template <typename T>
auto Sets(T XgbOptions::* field) {
  return [field](XgbOptions& o, double value) { o.*field = static_cast<T>(value); };
}

const std::vector<Parameter>& XgbParameters() {
  constexpr double kMany = 1e6;
  static const auto& parameters = *new std::vector<Parameter>{
      {"objective", 0, 1, Sets(&BoostOptions::objective)},
      {"max_depth", 1, 16, Sets(&BoostOptions::max_depth)},
      {"gamma", 0, kMany, Sets(&BoostOptions::gamma)},
      {"min_child_weight", 0, kMany, Sets(&BoostOptions::min_child_weight)},
      {"eta", 0.001, 1, Sets(&BoostOptions::eta)},
      {"lambda", 0, kMany, Sets(&BoostOptions::lambda)},
      {"colsample_bynode", 0.01, 1, Sets(&BoostOptions::colsample_bynode)},
      {"subsample", 0.01, 1, Sets(&BoostOptions::subsample)},
      {"max_bin", 2, 256, Sets(&BoostOptions::max_bin)},
      {"max_rounds", 1, 10000, Sets(&BoostOptions::max_rounds)},
      {"patience", 1, 10000, Sets(&BoostOptions::patience)},
      {"min_gain", 0, 1, Sets(&BoostOptions::min_gain)},
      {kMinSamples, 1, kMany, Sets(&XgbOptions::min_samples)},
      {"max_samples", 1, kMany, Sets(&XgbOptions::max_samples)},
      {"full_growth", 0, kMany, Sets(&XgbOptions::full_growth)},
      {"step_growth", 0, kMany, Sets(&XgbOptions::step_growth)},
      {"step_rounds", 1, 10000, Sets(&XgbOptions::step_rounds)},
      {"min_weight", 0, 1, Sets(&XgbOptions::min_weight)},
      {"prior_weight", 0, kMany, Sets(&XgbOptions::prior_weight)},
  };
  return parameters;
}

StatusOr<XgbOptions> MakeXgbOptions(const CostModelOptions& options) {
  XgbOptions xgb;
  xgb.feature_version = options.feature_version;
  xgb.estimate = options.estimate;
  xgb.boost.seed = options.seed;
  xgb.boost.stop = options.stop;
  xgb.kept_samples = options.kept_samples;
  xgb.boost.threads = std::max(1, options.threads);
  if (options.min_samples > 0) xgb.min_samples = options.min_samples;
  for (const auto& [name, value] : options.parameters) {
    const auto& known = XgbParameters();
    const auto at = std::find_if(known.begin(), known.end(), [&](const Parameter& parameter) {
      return parameter.name == name;
    });
    if (at == known.end()) {
      std::vector<std::string_view> names;
      for (const Parameter& parameter : known) names.push_back(parameter.name);
      return InvalidArgument("unknown parameter '{}' of cost model xgb, expected one of {}", name,
                             fmt::join(names, ", "));
    }
    if (!(value >= at->min && value <= at->max)) {
      return InvalidArgument("{} is {}, expected {} to {}", name, value, at->min, at->max);
    }
    at->set(xgb, value);
  }
  if (xgb.estimate != nullptr && xgb.boost.objective != Objective::kTime) {
    return InvalidArgument("objective is {}, expected 1: only times can be corrected",
                           static_cast<int>(xgb.boost.objective));
  }
  return xgb;
}

StatusOr<std::unique_ptr<CostModel>> Make(const CostModelOptions& options) {
  KILN_ASSIGN_OR_RETURN(const XgbOptions xgb, MakeXgbOptions(options));
  return std::make_unique<XgbModel>(xgb);
}

}  // namespace

constinit const CostModelKind kXgb = {
    .name = "xgb",
    .what = "learns from measurements: boosted trees, trained by XGBoost's C API",
    .make = Make};

}  // namespace kiln::costmodel
