// Unroll depths (facts §3.5), for CPUs and GPUs alike.
#pragma once

#include <optional>
#include <span>

#include "absl/functional/function_ref.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::search {

// The values of auto_unroll_max_step that are worth trying.
std::span<const int> UnrollChoices(bool gpu);

// Unrolls the axes that an operator wants unrolled, in its innermost tile, and gives every computed
// stage that reduces `choose(stage)` as its auto_unroll_max_step.
Status AnnotateUnroll(schedule::State& state, absl::FunctionRef<int(int stage)> choose);

schedule::StepPtr UnrollStep(int stage, int depth);
// The auto_unroll_max_step that a step sets, if it sets one.
std::optional<int> UnrollDepth(const schedule::Step& step);

}  // namespace kiln::search
