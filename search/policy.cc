#include "search/policy.h"

#include <fmt/ranges.h>

#include "compiler/features/features.h"
#include "search/empty_policy.h"
#include "search/random_policy.h"
#include "search/sketch_policy.h"

namespace kiln::search {
namespace {

SketchPolicyOptions OptionsOn(const Task& task, const PolicyOptions& options) {
  return {.models = options.models,
          .features =
              [&task](const schedule::State&, const ir::Program& program) {
                return features::ExtractFeatures(program, task.target, task.hardware, task.device);
              },
          .min_own_results = options.min_own_results,
          .threads = options.threads};
}

}  // namespace

std::vector<std::string> PolicyNames() {
  return {"sketch.xgb", "sketch.analytic", "sketch.random", "empty"};
}

StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const Task& task, uint64_t seed,
                                             const PolicyOptions& options) {
  KILN_ASSIGN_OR_RETURN(Parameters parameters, MakeParameters(options.parameters));
  if (name == "sketch.random")
    return std::make_unique<RandomPolicy>(task, std::move(parameters), seed);
  if (name == "empty") return std::make_unique<EmptyPolicy>(task);
  SketchPolicyOptions sketch = OptionsOn(task, options);
  if (name == "sketch.xgb") {
    if (sketch.models.learned == nullptr)
      return InvalidArgument("policy sketch.xgb needs a cost model that learns");
    return std::make_unique<SketchPolicy>(task, std::move(parameters), seed, std::move(sketch));
  }
  if (name == "sketch.analytic") {
    if (sketch.models.draft == nullptr)
      return InvalidArgument("policy sketch.analytic needs an analytic cost model");
    sketch.models.learned = nullptr;
    return std::make_unique<SketchPolicy>(task, std::move(parameters), seed, std::move(sketch));
  }
  return InvalidArgument("unknown policy '{}', expected one of {}", name,
                         fmt::join(PolicyNames(), ", "));
}

}  // namespace kiln::search
