// From an edited list of steps to a state: the way every change of a schedule ends.
//
// A change edits tile lengths and knows nothing of what follows from them. Here the steps are
// replayed with extents as they are now, splits behind a changed one are made exact again, and
// vector widths of shared fetches are cut to what the new tiles allow.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "search/space/round_report.h"
#include "search/space/task.h"

namespace kiln::search {

// Refuses (FailedPrecondition, and `why` says of which kind) what does not apply, and on a GPU what
// is beyond the device's limits. Cost: tens of microseconds on a CPU target; on a GPU a hundred, as
// the extents of the fetches must be found.
StatusOr<schedule::State> Rebuild(const Task& task, std::span<const schedule::StepPtr> steps,
                                  Drop& why);

// Threads and virtual threads of the blocks, read off tile lengths alone: a microsecond. Steps that
// tell nothing pass.
Status CheckThreadTiles(std::span<const schedule::StepPtr> steps,
                        const target::HardwareParams& hardware);

// The threads of the smallest block that tiles tell of; none: no tile does.
std::optional<int64_t> ThreadsOfTiles(std::span<const schedule::StepPtr> steps);

// The split whose inner part is fetched as one vector by a thread of the block: an SP, its
// vectorized inner loop, an FFSP.
bool IsFetchSplit(std::span<const schedule::StepPtr> steps, size_t step);
// A split into pieces of one number of threads: an SP of one length whose inner loop is bound to
// threadIdx.x.
bool IsThreadSplit(std::span<const schedule::StepPtr> steps, size_t step);

}  // namespace kiln::search
