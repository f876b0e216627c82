// Kiln's own steps, which TVM's measure records do not have. docs/steps.md marks them. TVM refuses
// a whole log that has one of them.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {

// Returns true if one of the steps (JSON, step.h) is an extension. Errors are those of ParseSteps.
StatusOr<bool> HasExtension(std::string_view steps_json);

}  // namespace kiln::schedule
