#include <fmt/ranges.h>

#include "base/text/closest_names.h"
#include "search/policies/empty_policy.h"
#include "search/policies/heuristic_policy.h"
#include "search/policies/policy.h"
#include "search/policies/random_policy.h"
#include "search/policies/sketch_policy.h"
#include "search/policies/template_features.h"
#include "search/policies/template_policy.h"
#include "search/templates/shipped.h"

namespace kiln::search {

// The table has a line for each policy.
std::span<const PolicyKind* const> Policies() {
  static constexpr const PolicyKind* kPolicies[] = {
      &kSketchXgb,       &kSketchAnalytic,     &kSketchRandom,   &kHeuristic,    &kTemplateXgb,
      &kTemplateGenetic, &kTemplateCoordinate, &kTemplateRandom, &kTemplateGrid, &kEmpty,
  };
  return kPolicies;
}

std::vector<std::string> PolicyNames() {
  std::vector<std::string> names;
  for (const PolicyKind* kind : Policies()) names.emplace_back(kind->name);
  return names;
}

StatusOr<const PolicyKind*> FindPolicy(std::string_view name) {
  for (const PolicyKind* kind : Policies()) {
    if (kind->name == name) return kind;
  }
  return InvalidArgument("unknown policy '{}', expected one of {}{}", name,
                         fmt::join(PolicyNames(), ", "), DidYouMean(name, PolicyNames()));
}

StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const Task& task, uint64_t seed,
                                             const PolicyOptions& options) {
  KILN_ASSIGN_OR_RETURN(const PolicyKind* const kind, FindPolicy(name));
  KILN_ASSIGN_OR_RETURN(Parameters parameters, MakeParameters(options.parameters));
  if (kind->learns_from_points) KILN_RETURN_IF_ERROR(CheckHistoryFeatures(options.parameters));
  const bool learns = !kind->learned_model.empty();
  if (learns && options.models.learned == nullptr)
    return InvalidArgument("policy {} needs a cost model that learns", name);
  if (!learns && kind->uses_analytic_model && options.models.prior == nullptr)
    return InvalidArgument("policy {} needs an analytic cost model", name);
  PolicyOptions given = options;
  if (!learns) given.models.learned = nullptr;
  if (options.rules != nullptr && !kind->takes_rules)
    return InvalidArgument("policy {} makes no sketches, and the job has sketch rules", name);
  if (kind->uses_template) {
    KILN_ASSIGN_OR_RETURN(given.schedule_template,
                          TemplateFor(options.schedule_template, task.dag, task.target.is_gpu()));
  }
  return kind->make(task, std::move(parameters), seed, given);
}

}  // namespace kiln::search
