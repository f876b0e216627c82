// From a sketch to a complete GPU state: random tile sizes, loops bound to blocks and threads (as
// InitThreadBind of TVM v0.14 does, src/auto_scheduler/search_policy/sketch_policy_rules.cc),
// random widths of vectorized fetches and unroll depths.
#pragma once

#include "base/rng.h"
#include "compiler/schedule/state.h"
#include "search/space/parameters.h"
#include "search/space/sketch.h"
#include "search/space/task.h"

namespace kiln::search {

// Refuses (FailedPrecondition) a draw that is illegal or beyond the device's limits
// (gpu_validity.h); draw again: of a convolution's draws one in fifteen is accepted, at 20 us each.
// Deterministic for the state of rng.
StatusOr<schedule::State> SampleGpu(const Sketch& sketch, const Task& task,
                                    const Parameters& parameters, Rng& rng);

// The parts of it, for tests and for mutation.

// Binds every kernel's loops. Kernels without tiles have a warp per block, or with vary_threads a
// random shape (thread_shapes.h). The fetches of a shared stage take a random vector width: one
// that fits the device's vector loads, divides what a thread fetches and stays in a contiguous run
// of the source. Leaves extents unknown.
Status BindThreads(schedule::State& state, const target::HardwareParams& hardware,
                   bool vary_threads, Rng& rng);

// The widths that a fetch of the shared stage may take, ascending, 1 among them. The extents of
// `state` must be filled.
std::vector<int64_t> FetchWidths(const schedule::State& state, int stage, int64_t threads,
                                 int vector_bytes);

// The same for the stage of a copy (IsCopied): besides, rows of its source are whole vectors.
std::vector<int64_t> CopyWidths(const schedule::State& state, int stage, int64_t threads,
                                int vector_bytes);

// The same for what a thread adds up of the partial sums `parts` of a cluster's blocks
// (ClusterStageIn): in a row of the tile.
std::vector<int64_t> SumWidths(const schedule::State& state, int parts, int64_t threads,
                               int vector_bytes);

Status AnnotateGpuUnroll(schedule::State& state, Rng& rng);

}  // namespace kiln::search
