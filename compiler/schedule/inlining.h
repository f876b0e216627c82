// Limits the inlining of stages. Bodies put into bodies can grow without bounds (x*x of x*x of ...,
// a reader of the last two), so a stage whose inlining would be too large is refused.
#pragma once

#include "base/status.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Checks that the bodies that the stage is inlined into stay within dag/limits.h. The sizes are
// computed before anything is substituted, through producers and readers that are inlined too.
// Cost: linear in the stages that are inlined around this one, which the limits keep few.
Status CheckInlinedSize(const State& state, int stage);

}  // namespace kiln::schedule
