// What a GPU state must keep to be worth lowering, read off its loop extents: a few comparisons
// instead of a few hundred microseconds.
//
// Sound but not complete: a state refused here cannot launch, or fetches so much ahead that nothing
// is left of its registers; one that passes is checked exactly on the lowered program before code
// is made.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "compiler/schedule/state.h"
#include "compiler/target/target.h"

namespace kiln::search {

// Of the kernel of one root stage; of an online softmax only the threads, the rest of which
// CheckGpuLimits reads off its program.
struct BlockUse {
  int64_t threads = 1;       // per block
  int64_t cluster = 1;       // blocks
  int64_t vthreads = 1;      // the largest extent of a vthread loop
  int64_t shared_bytes = 0;  // fetched and partial sums, with padding; without scratch
  int64_t ahead_words = 0;   // that each thread holds in registers while it fetches them ahead
};

// Of ahead_words. Kernels with more spill: they take seconds to compile and are never among the
// best.
inline constexpr int64_t kMaxAheadWords = 64;

// The extents must be filled (lower::FillExtents); unknown ones count as 1.
BlockUse UseOfKernel(const schedule::State& state, int root);

inline constexpr int64_t kRegisters = 65536;  // of a multiprocessor

// FailedPrecondition names the stage, the amount and the limit, or why its tiles do not fit the
// matrix units that are to compute them.
Status CheckGpuLimits(const schedule::State& state, const target::HardwareParams& hardware,
                      int64_t max_cluster_blocks);

}  // namespace kiln::search
