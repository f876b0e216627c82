// Software pipelining of the tiles that a loop fetches into shared memory: they are fetched ahead
// of their use, into buffers of several times the size. There are two ways.
//
// Through registers (double buffering): the next tiles are read while the current ones are used,
// and stored into the other half of the buffers afterwards.
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
//
// Asynchronously, with a ring of `depth` buffers and depth - 1 iterations in flight:
//
//   for s < depth - 1 { copies of fetch(s) into buffer s; commit }
//   for t {
//     barrier(depth - 2)           iteration t has arrived; all have done with t - 1
//     if t + depth - 1 < n { copies of fetch(t + depth - 1) into the buffer of t - 1 }
//     commit
//     work(t) from buffer t % depth
//   }
//
// Where matrix units work beside the threads, the work stands before the copies instead: it is under
// way while they are issued. Of a ring with a buffer to spare one copy less is ahead: then those of
// iteration t are not into the buffer of t - 1, so that its work may still be under way, too.
//
// Parts of a fetch that cannot be copied asynchronously (a tile that is transposed, a value that is
// computed) go through registers: they are read where the copies are, and stored behind the work.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/arith/simplify.h"
#include "compiler/ir/program.h"

namespace kiln::lower {

struct FetchLoop {
  int32_t var;
  int64_t extent;
};

// A new variable owned by the same loop as the given one.
using CopyVar = std::function<int32_t(int32_t var, int64_t extent)>;

struct PipelineMode {
  int depth = 2;              // of the ring; no more than there are iterations
  bool asynchronous = false;  // else through registers, and depth is 2
  bool work_first = false;    // asynchronous copies stand behind the work
  bool spares_one = false;    // a buffer of an asynchronous ring, of three or more
};

// A shared buffer that is fetched; may_copy: asynchronously, where its values are copies.
struct FetchedSlot {
  int32_t slot;
  bool may_copy = false;
};

// loops: the serial loops around fetch and work, outermost first, at least one, of two iterations
// at least together. They become one. slots: the shared buffers that `fetch` writes, each element
// in at most one iteration of the loops inside it; their shapes get a new first dimension, the
// depth. `fetch` holds stores, loops and conditions that all threads reach.
ir::Stmt FetchAhead(ir::Program& program, const std::vector<FetchLoop>& loops,
                    const std::vector<FetchedSlot>& slots, PipelineMode mode, ir::Stmt fetch,
                    ir::Stmt work, const CopyVar& copy_var);

}  // namespace kiln::lower
