// Which tiles in shared memory can be fetched asynchronously (BF), element by element as they are,
// without going through registers.
#pragma once

#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Is the stage a copy of elements, or of zeros where conditions do not hold, in pieces of 4 bytes
// or more? Of a fetch in vectors the elements must also be side by side in the stage's layout: a
// tile that is transposed on the way is better kept in registers than copied 4 bytes at a time.
bool CanCopyAsync(const State& state, int s);

}  // namespace kiln::schedule
