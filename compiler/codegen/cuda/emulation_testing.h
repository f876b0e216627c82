// Runs generated CUDA C on the CPU: the text is compiled by g++ against a small header that gives
// blockIdx, __syncthreads and the rest, and the threads of a block run as fibers, one after the
// other from barrier to barrier; a warp runs as far as it gets alone. It tests the text, not the
// speed, on machines without a GPU.
//
// The blocks of a cluster run each as far as it gets, in turns, and the shared memory of one that
// has ended is gone.
//
// Caught besides wrong results: misaligned vector accesses (they trap), a barrier that not all
// threads of a warp, block or cluster reach. Asynchronous copies happen as late as they may, and
// until then the element is poisoned. Needs g++ in the path at run time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/ir/ndarray.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// buffers: one per argument of the program, workspaces too; changed in place. Without late_copies
// asynchronous copies are what they are on GPUs that have none.
Status EmulateCuda(const ir::Program& program, const CudaSource& source,
                   std::vector<ir::NDArray>& buffers, bool late_copies = true);

// Interprets the program (ir/interpreter.h) and emulates its CUDA text on the same random inputs,
// then compares the outputs: |a - b| <= tolerance * max(1, |b|).
Status CompareEmulated(const ir::Program& program, uint64_t seed, double tolerance,
                       const CudaOptions& options = {}, bool late_copies = true);

// Emulates the program's CUDA text with another call, or none, in place of all such calls of its kernels, on
// random inputs: the last output. A test of what the emulator sees.
StatusOr<ir::NDArray> EmulateWithout(const ir::Program& program, std::string_view call,
                                     std::string_view instead = "");

}  // namespace kiln::codegen
