// Unrolled loops, and the other hints of stages that every target has.
#pragma once

#include "absl/functional/function_ref.h"
#include "compiler/schedule/state.h"
#include "search/space/stage_hints.h"

namespace kiln::search {

// Unrolls the axes that an operator wants unrolled, in its innermost tile, and gives every stage
// that has a use for a hint which is not one of GPUs only the value that `choose` returns.
Status AnnotateUnroll(schedule::State& state,
                      absl::FunctionRef<int32_t(int stage, const HintChoice& choice)> choose);

}  // namespace kiln::search
