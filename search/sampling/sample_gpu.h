// Completes a sketch to a GPU state: draws tile sizes at random, binds loops to blocks and threads
// (like InitThreadBind of TVM v0.14, src/auto_scheduler/search_policy/sketch_policy_rules.cc), and
// draws widths of vectorized fetches and unroll depths.
#pragma once

#include "base/numbers/rng.h"
#include "compiler/schedule/state.h"
#include "search/space/parameters.h"
#include "search/space/sketch.h"
#include "search/space/task.h"

namespace kiln::search {

// Refuses (FailedPrecondition) a draw that is illegal or beyond the device's limits
// (gpu_validity.h); then draw again. One in fifteen draws of a convolution is accepted, at 20 us
// each. Deterministic for the state of rng.
StatusOr<schedule::State> SampleGpu(const Sketch& sketch, const Task& task,
                                    const Parameters& parameters, Rng& rng);

// The parts of a sample, for tests and for mutation.

// Binds the loops of every kernel. Kernels without tiles have a warp per block, or a random shape
// with vary_threads (thread_shapes.h). Fetches of a shared stage get a random vector width that
// fits the device's vector loads, divides the elements that a thread fetches, and stays in a
// contiguous run of the source. Leaves extents unknown.
Status BindThreads(schedule::State& state, const target::HardwareParams& hardware,
                   bool vary_threads, Rng& rng);

// Returns the widths that a fetch of the shared stage may have, ascending. 1 is always one of them.
// The extents of `state` must be filled.
std::vector<int64_t> FetchWidths(const schedule::State& state, int stage, int64_t threads,
                                 int vector_bytes);

// Returns the same for the stage of a copy (IsCopied), whose source rows must also be whole
// vectors.
std::vector<int64_t> CopyWidths(const schedule::State& state, int stage, int64_t threads,
                                int vector_bytes);

// Returns the widths in which a thread may add up the partial sums `parts` of a cluster's blocks
// (ClusterStageIn). A vector stays in one row of the tile.
std::vector<int64_t> SumWidths(const schedule::State& state, int parts, int64_t threads,
                               int vector_bytes);

Status AnnotateGpuUnroll(schedule::State& state, Rng& rng);

}  // namespace kiln::search
