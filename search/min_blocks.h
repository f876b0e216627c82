// How many blocks of a tiled GPU kernel shall fit a multiprocessor at once. Where registers are
// what limits it, the compiler then keeps to fewer of them.
#pragma once

#include <optional>
#include <vector>

#include "base/rng.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::search {

// 0: the compiler decides; else so many that 64 registers are left for a thread. 1 is always one:
// with it the compiler spends more registers than by its own choice.
std::vector<int> MinBlocksChoices(int64_t threads_per_block);

schedule::StepPtr MinBlocksStep(int stage, int blocks);
// What a step asks for, if it is of that kind.
std::optional<int> MinBlocksOf(const schedule::Step& step);

// Every kernel that fetches tiles gets a step. The extents must be filled.
Status AnnotateMinBlocks(schedule::State& state, Rng& rng);

}  // namespace kiln::search
