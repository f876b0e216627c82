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
//     if t + 1 < n { registers = loads of fetch(t + 1) }
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
//     barrier(depth - 2)           iteration t has arrived; all threads have finished work(t - 1)
//     if t + depth - 1 < n { copies of fetch(t + depth - 1) into the buffer of t - 1 }
//     commit
//     work(t) from buffer t % depth
//   }
//
// If matrix units work beside the threads, the work stands before the copies instead: the units
// work while the copies are issued. A ring with a buffer to spare has one iteration less in flight.
// The copies of iteration t then do not go into the buffer of t - 1, so that its work may also go
// on.
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

// Makes a new variable that is owned by the same loop as the given one.
using CopyVar = std::function<int32_t(int32_t var, int64_t extent)>;

struct PipelineMode {
  // Number of buffers of the ring. At most the number of iterations.
  int depth = 2;
  // False: through registers, and depth is 2.
  bool asynchronous = false;
  // Asynchronous copies stand behind the work.
  bool work_first = false;
  // An asynchronous ring of three or more buffers has one to spare.
  bool spares_one = false;
};

// A shared buffer that is fetched. may_copy: asynchronous copies are allowed for values that are
// copies.
struct FetchedSlot {
  int32_t slot;
  bool may_copy = false;
};

// `loops` are the serial loops around fetch and work, outermost first: at least one, with at least
// two iterations together. They become one loop. `slots` are the shared buffers that `fetch`
// writes, each element in at most one iteration of the loops inside it. Their shapes get a new
// first dimension, the depth. `fetch` holds stores, loops and conditions that all threads reach.
ir::Stmt FetchAhead(ir::Program& program, const std::vector<FetchLoop>& loops,
                    const std::vector<FetchedSlot>& slots, PipelineMode mode, ir::Stmt fetch,
                    ir::Stmt work, const CopyVar& copy_var);

}  // namespace kiln::lower
