// The split itself, which SP, FSP and FFSP share once their lengths are known.
#pragma once

#include <span>

#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Replaces the loop by lengths+1 loops. The loop was checked.
void SplitLoop(State& state, int stage, int loop, std::span<const int64_t> lengths,
               bool inner_to_outer);

}  // namespace kiln::schedule
