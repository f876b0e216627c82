#include "compiler/schedule/extensions.h"

#include <algorithm>
namespace kiln::schedule {

StatusOr<bool> HasExtension(std::string_view steps_json) {
  KILN_ASSIGN_OR_RETURN(const std::vector<StepPtr> steps, ParseSteps(steps_json));
  return std::any_of(steps.begin(), steps.end(),
                     [](const StepPtr& step) { return step->IsExtension(); });
}

}  // namespace kiln::schedule
