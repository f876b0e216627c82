// Checks that the steps of a log are a schedule of this computation. A key such as ["my_matmul",
// 127, 96, 80] does not tell, so the steps are replayed. Every step must apply. If a step splits an
// axis of an operator, the extent noted in the step must be that of the axis. Extents noted for
// other loops may be stale and are not compared.
#pragma once

#include <string_view>

#include "base/status.h"

namespace kiln::schedule {

// Both arguments are texts (dag/text.h, step.h). FailedPrecondition: the first step that does not
// fit, with the reason. Cost: that of parsing both and of the replay.
Status CheckFit(std::string_view dag, std::string_view steps_json);

}  // namespace kiln::schedule
