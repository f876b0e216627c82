// Chooses how far ahead of their use, and by which method, tiles are fetched into shared memory:
// one BF step for every stage that reads such tiles.
#pragma once

#include <vector>

#include "base/numbers/rng.h"
#include "compiler/ir/matrix_unit_scope.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "search/space/parameters.h"
#include "search/space/task.h"

namespace kiln::search {

// Returns the choices for the stage that reads the tiles: not ahead; through registers; and, if the
// target has them, by asynchronous copies of each depth from 2 to the largest that the parameters
// allow for those units.
std::vector<schedule::StepPtr> BufferingChoices(int reader, ir::MatrixUnitScope units,
                                                const Task& task, const Parameters& parameters);

// Draws a choice for each stage at random. If the device has no room for so many buffers, takes as
// many as it has room for. Copies are chosen only if some tile can be copied. Extents must be
// filled, and fetches bound.
Status AnnotateBuffering(schedule::State& state, const Task& task, const Parameters& parameters,
                         Rng& rng);

}  // namespace kiln::search
