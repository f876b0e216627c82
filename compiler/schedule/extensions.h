// Steps that TVM's measure records do not have: Kiln's own, marked so in docs/steps.md. TVM refuses
// a whole log for one of them.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {

// Is one of the steps (JSON, step.h) an extension? Errors as ParseSteps.
StatusOr<bool> HasExtension(std::string_view steps_json);

}  // namespace kiln::schedule
