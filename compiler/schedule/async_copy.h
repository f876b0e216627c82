// Finds the tiles in shared memory that can be fetched by asynchronous copies (BF steps), which do
// not go through registers.
#pragma once

#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Returns true if the stage only copies elements (or zeros if a condition is false), in pieces of
// at least 4 bytes. If the tile is fetched in vectors, the elements of a vector must also be
// neighbours in the stage's layout: a tile that is transposed is faster through registers than by
// copies of 4 bytes.
bool CanCopyAsync(const State& state, int s);

}  // namespace kiln::schedule
