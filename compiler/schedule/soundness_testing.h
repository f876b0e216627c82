// Is a finished state sound on a CPU? Steps are checked one by one when they are applied. The rules
// here concern the finished state: a sequence of steps may break them on the way and satisfy them
// in the end.
#pragma once

#include "base/status.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Is the computation at (stage, loop) or deeper reached whenever `inner` is computed: is `inner`
// that stage, or attached (through others) to that loop or one inside it?
bool IsInside(const State& state, int inner, int stage, int loop);

// Refuses, with the stage and the reason:
//   a stage computed where one of its readers cannot see it
//   parallel or vectorized loops that are not spatial; a parallel loop inside another one
//   a vectorized loop that is not innermost, has something attached, or an unknown extent or one
//     above 16
//   annotations of a GPU
Status CheckSound(const State& state);

}  // namespace kiln::schedule
