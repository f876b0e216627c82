#include "compiler/schedule/extensions.h"

#include <algorithm>

#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

bool IsExtension(const Step& step) {
  if (step.tag() == BufferingStep::kTag || step.tag() == LayoutStep::kTag) return true;
  if (step.tag() == AnnotateStep::kTag) {
    return static_cast<const AnnotateStep&>(step).annotation == Annotation::kCluster;
  }
  return PragmaNumber(step, kMinBlocksPragma).has_value() ||
         PragmaNumber(step, kFragmentsPragma).has_value();
}

StatusOr<bool> HasExtension(std::string_view steps_json) {
  KILN_ASSIGN_OR_RETURN(const std::vector<StepPtr> steps, ParseSteps(steps_json));
  return std::any_of(steps.begin(), steps.end(),
                     [](const StepPtr& step) { return IsExtension(*step); });
}

}  // namespace kiln::schedule
