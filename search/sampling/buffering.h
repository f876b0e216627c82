// How far ahead of their use, and in which way, the tiles in shared memory are fetched: a BF step
// for every stage that reads such tiles.
#pragma once

#include <vector>

#include "base/rng.h"
#include "compiler/ir/matrix_unit_scope.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "search/space/parameters.h"
#include "search/space/task.h"

namespace kiln::search {

// Of the stage that reads the tiles: not ahead, through registers, and by asynchronous copies,
// where the target has them, of each depth from 2 to the most that the parameters say for those units.
std::vector<schedule::StepPtr> BufferingChoices(int reader, ir::MatrixUnitScope units,
                                                const Task& task, const Parameters& parameters);

// Extents must be filled, fetches bound. By chance; of more buffers than the device has room for as
// many as it has. Copies only where some tile can be copied.
Status AnnotateBuffering(schedule::State& state, const Task& task, const Parameters& parameters,
                         Rng& rng);

}  // namespace kiln::search
