// Random unroll depths (facts §3.5), for CPUs and GPUs alike.
#pragma once

#include <span>

#include "base/rng.h"
#include "compiler/schedule/state.h"

namespace kiln::search {

// Unrolls the axes that an operator wants unrolled, in its innermost tile, and gives every computed
// stage that reduces one of `choices` as its auto_unroll_max_step.
Status AnnotateUnroll(schedule::State& state, std::span<const int> choices, Rng& rng);

}  // namespace kiln::search
