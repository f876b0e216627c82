// The split itself, which SP, FSP and FFSP share once their lengths are known.
#pragma once

#include <span>

#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Replaces the loop by lengths+1 loops. The caller has checked the loop.
void SplitLoop(State& state, int stage, int loop, std::span<const int64_t> lengths,
               bool inner_to_outer);

}  // namespace kiln::schedule
