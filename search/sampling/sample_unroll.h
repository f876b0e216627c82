// Unrolls loops, and sets the other hints of stages that every target has.
#pragma once

#include "absl/functional/function_ref.h"
#include "compiler/schedule/state.h"
#include "search/space/stage_hints.h"

namespace kiln::search {

// Unrolls the axes that an operator wants unrolled, in its innermost tile. Sets each hint that is
// not for GPUs only, on every stage that has a use for it, to the value that `choose` returns.
Status AnnotateUnroll(schedule::State& state,
                      absl::FunctionRef<int32_t(int stage, const HintChoice& choice)> choose);

}  // namespace kiln::search
