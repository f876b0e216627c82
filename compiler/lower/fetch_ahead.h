// Double buffering: the tiles that a loop fetches into shared memory are read one iteration ahead
// into registers, while the current ones are worked on, and stored into the other half of buffers
// of twice the size.
//
//   for t { barrier; fetch(t); barrier; work(t) }
//
// becomes
//
//   fetch(0) into half 0; barrier
//   for t {
//     if t + 1 < n { registers = what fetch(t + 1) reads }
//     work(t) from half t % 2
//     if t + 1 < n { half (t + 1) % 2 = registers; barrier }
//   }
//
// The loads are in flight during the work, and one barrier an iteration is left: a half is written
// while the other one is read.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/ir/simplify.h"

namespace kiln::lower {

struct FetchLoop {
  int32_t var;
  int64_t extent;
};

// A new variable owned by the same loop as the given one.
using CopyVar = std::function<int32_t(int32_t var, int64_t extent)>;

// loops: the serial loops around fetch and work, outermost first, at least one. They become one.
// slots: the shared buffers that `fetch` writes, each element in at most one iteration of the loops
// inside it; their shapes get a new first dimension of 2. `fetch` holds stores, loops and
// conditions that all threads reach.
ir::Stmt FetchAhead(ir::Program& program, const std::vector<FetchLoop>& loops,
                    const std::vector<int32_t>& slots, ir::Stmt fetch, ir::Stmt work,
                    const CopyVar& copy_var);

}  // namespace kiln::lower
