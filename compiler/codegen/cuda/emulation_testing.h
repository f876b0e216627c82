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
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/ir/ndarray.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// Programs that are compiled together, by one call of g++, which takes most of the time, and run any
// number of times. One thread.
class EmulatedCuda {
 public:
  static StatusOr<std::unique_ptr<EmulatedCuda>> Compile(std::vector<CudaSource> sources,
                                                         bool late_copies = true);
  ~EmulatedCuda();
  EmulatedCuda(const EmulatedCuda&) = delete;
  EmulatedCuda& operator=(const EmulatedCuda&) = delete;

  // The program of so many; buffers as EmulateCuda takes them.
  Status Run(size_t program, std::vector<ir::NDArray>& buffers);

 private:
  EmulatedCuda(std::vector<CudaSource> sources, void* library)
      : sources_(std::move(sources)), library_(library) {}

  std::vector<CudaSource> sources_;
  void* library_;
};

// buffers: one per argument of the program, workspaces too; changed in place. Without late_copies
// asynchronous copies are what they are on GPUs that have none.
Status EmulateCuda(const ir::Program& program, const CudaSource& source,
                   std::vector<ir::NDArray>& buffers, bool late_copies = true);

// Interprets the program (ir/interpreter.h; threads may write equal values to one element) and
// emulates its CUDA text on the same random inputs, then compares the outputs:
// |a - b| <= tolerance * max(1, |b|).
Status CompareEmulated(const ir::Program& program, uint64_t seed, double tolerance,
                       const CudaOptions& options = {}, bool late_copies = true);

// Emulates the program's CUDA text with another call, or none, in place of all such calls of its kernels, on
// random inputs: the last output. A test of what the emulator sees.
StatusOr<ir::NDArray> EmulateWithout(const ir::Program& program, std::string_view call,
                                     std::string_view instead = "");

}  // namespace kiln::codegen
