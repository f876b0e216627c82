// Which tiles in shared memory can be fetched by asynchronous copies (BF steps), which do not go
// through registers.
#pragma once

#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Does the stage only copy elements (or zeros where conditions do not hold), in pieces of at least
// 4 bytes? If it is fetched in vectors, their elements must also be neighbours in the stage's
// layout: a tile that is transposed is faster through registers than by copies of 4 bytes.
bool CanCopyAsync(const State& state, int s);

}  // namespace kiln::schedule
