// How the register tiles of a GPU stage read what is in shared memory: where they use it, a step of
// the reduction ahead, or ahead and to and fro (compiler/codegen/cuda_fragments.h). It decides how
// the compiler spends registers, which no rule foresees: 389 to 352 us for matrices of 2048.
#pragma once

#include <optional>

#include "base/rng.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::search {

inline constexpr int kFragmentWays = 3;

schedule::StepPtr FragmentsStep(int stage, int way);
// What a step asks for, if it is of that kind.
std::optional<int> FragmentsOf(const schedule::Step& step);

// Every stage that reads fetched tiles gets a step.
Status AnnotateFragments(schedule::State& state, Rng& rng);

}  // namespace kiln::search
