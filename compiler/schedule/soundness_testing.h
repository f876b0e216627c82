// Checks that a finished state is sound on a CPU. Each step is checked when it is applied. The
// rules here concern the finished state: a sequence of steps may break them on the way and satisfy
// them in the end.
#pragma once

#include "base/status.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Returns true if the computation at (stage, loop) or deeper is reached whenever `inner` is
// computed: `inner` is that stage, or is attached (through others) to that loop or to one inside
// it.
bool IsInside(const State& state, int inner, int stage, int loop);

// Refuses, with the stage and the reason:
//   a stage computed where one of its readers cannot see it
//   parallel or vectorized loops that are not spatial; a parallel loop inside another one
//   a vectorized loop that is not innermost, has a stage attached, or has an extent that is unknown
//     or above 16
//   annotations of a GPU
Status CheckSound(const State& state);

}  // namespace kiln::schedule
