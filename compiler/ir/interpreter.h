// Runs a program on arrays, slowly and with many checks. Lowering and code generators are tested
// against it.
//
// Errors (InvalidArgument for wrong arguments, else FailedPrecondition: the program is wrong) name
// the buffer, the index, the shape, the stage and the loop values. Besides the structure (Verify)
// these rules are checked:
//   * every access is inside its buffer;
//   * no element of an output, workspace, shared or local buffer is read before it is written (an
//     alloc makes all elements undefined);
//   * every element of every output is written;
//   * a barrier is reached by all threads of the block;
//   * there are no races: no other iteration or thread touches an element that an iteration of a
//     parallel loop or a GPU thread writes, unless both are threads of one block with a barrier
//     between the accesses.
//
// CPU loops run serially, whatever their kind. A kernel with bound loops runs block after block,
// the threads of a block in lockstep, statement by statement; each thread has its own local
// buffers, and each block its own shared buffers.
//
// Cost: 150 ns for c[i, j] = c[i, j] + a[i, k]*b[k, j]; a program of 16 stores takes 3 us in all.
#pragma once

#include <span>

#include "compiler/ir/ndarray.h"
#include "compiler/ir/program.h"

namespace kiln::ir {

struct InterpreterOptions {
  bool check_races = true;
  // Two threads may write the same value to one element. That is harmless, and happens in a stage
  // that leaves threads unused.
  bool allow_equal_writes = false;
  bool check_outputs_written = true;
  // Programs that need more are refused (ResourceExhausted), because programs may come from users.
  // A step is a statement that a thread runs, or an element of a buffer that is allocated.
  int64_t max_steps = int64_t{2} << 30;
  int64_t max_bytes = int64_t{4} << 30;
};

// `arguments` are the input and output buffers of the program in order, with their types and
// shapes. The interpreter makes the workspaces.
Status Interpret(const Program& program, std::span<NDArray* const> arguments,
                 const InterpreterOptions& options = {});

}  // namespace kiln::ir
