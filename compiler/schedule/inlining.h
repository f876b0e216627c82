// How far a stage may be inlined: putting bodies into bodies can grow without bounds (x*x of x*x of
// ..., a reader of the last two), and what is too large or too high stays a stage.
#pragma once

#include "base/status.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Would the bodies that the stage ends up in stay within dag/limits.h? Counted before anything is
// substituted. What is inlined itself, above and below the stage, is passed through.
// Cost: linear in the stages that are inlined around this one, which the limits keep few.
Status CheckInlinedSize(const State& state, int stage);

}  // namespace kiln::schedule
