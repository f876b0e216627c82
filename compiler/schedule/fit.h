// May steps of a log be a schedule of a computation? A key such as ["my_matmul", 127, 96, 80] does
// not say; replaying them tells: every step must apply, and where a step splits an axis of an
// operator, the extent that it notes must be that of the axis. Extents of other loops are notes
// that grow stale.
#pragma once

#include <string_view>

#include "base/status.h"

namespace kiln::schedule {

// Both as texts (dag/text.h, step.h). FailedPrecondition: the first step that does not fit, and
// why. Cost: that of parsing both and of the replay.
Status CheckFit(std::string_view dag, std::string_view steps_json);

}  // namespace kiln::schedule
