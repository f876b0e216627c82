// Tiles of an online softmax (OS steps) that the bulk copy engine of sm_90 can bring:
// Hint::kBulkCopies on its stage (compiler/codegen/cuda/bulk_visits.h says what it does).
#pragma once

#include "compiler/schedule/state.h"

namespace kiln::search {

// Returns true if code generation takes the hint: units of four warps multiply, tiles are fetched
// ahead, there are several, and keys and values are read as they lie in arrays of up to 5 dimensions
// with rows of a multiple of 16 bytes. The state has a tile without blanks.
bool CanBringTiles(const schedule::State& state);

// Returns the number of threads that copy on top of those that compute; 0: the hint is not set, or a
// lone group of four warps copies for itself, as it does with long tiles.
int64_t CopyingThreads(const schedule::State& state);

}  // namespace kiln::search
