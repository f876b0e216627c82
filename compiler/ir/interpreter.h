// Runs a program on arrays, slowly and with many checks: the reference that lowering and code
// generators are tested against.
//
// Errors (InvalidArgument for wrong arguments, else FailedPrecondition: the program is wrong) name
// the buffer, the index, the shape, the stage and the loop values. Checked, besides the structure
// (Verify):
//   * every access is inside its buffer;
//   * no element of an output, workspace, shared or local buffer is read before it is written (an
//     alloc forgets);
//   * every element of every output is written;
//   * a barrier is reached by all threads of the block;
//   * no races: what one iteration of a parallel loop, or one GPU thread, writes no other one
//     touches, but for threads of one block with a barrier between.
//
// CPU loops run serially, whatever their kind. A kernel with bound loops runs block after block,
// the threads of a block in lockstep, statement by statement; locals are one per thread, shared
// buffers one per block.
//
// Cost: 150 ns for c[i, j] = c[i, j] + a[i, k]*b[k, j]; a program of 16 stores takes 3 us in all.
#pragma once

#include <span>

#include "compiler/ir/ndarray.h"
#include "compiler/ir/program.h"

namespace kiln::ir {

struct InterpreterOptions {
  bool check_races = true;
  // Two threads may write the same value to one element: harmless, and what a stage that leaves
  // threads unused does.
  bool allow_equal_writes = false;
  bool check_outputs_written = true;
  // More is refused (ResourceExhausted): programs may come from users. A step is a statement that a
  // thread runs, or an element of a buffer that is allocated.
  int64_t max_steps = int64_t{2} << 30;
  int64_t max_bytes = int64_t{4} << 30;
};

// `arguments`: the input and output buffers of the program in order, of their types and shapes;
// workspaces are made here.
Status Interpret(const Program& program, std::span<NDArray* const> arguments,
                 const InterpreterOptions& options = {});

}  // namespace kiln::ir
