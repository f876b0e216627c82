// Makes a state of an edited list of steps. Every change of a schedule ends here.
//
// A change edits tile lengths and ignores the consequences. Rebuild replays the steps with the
// current extents, makes splits after a changed one exact again, and cuts vector widths of shared
// fetches to those that the new tiles allow.
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

// Refuses steps that do not apply and, on a GPU, schedules beyond the device's limits
// (FailedPrecondition; `why` is the kind of refusal). Cost: tens of microseconds on a CPU target; a
// hundred on a GPU, because the extents of the fetches must be found.
StatusOr<schedule::State> Rebuild(const Task& task, std::span<const schedule::StepPtr> steps,
                                  Drop& why);

// Checks threads and virtual threads of the blocks by the tile lengths alone, in a microsecond.
// Steps that do not tell them pass.
Status CheckThreadTiles(std::span<const schedule::StepPtr> steps,
                        const target::HardwareParams& hardware);

// Returns the threads of the smallest block, as far as tiles tell. None: no tile tells a number of
// threads.
std::optional<int64_t> ThreadsOfTiles(std::span<const schedule::StepPtr> steps);

// Tells whether the step splits a fetch so that a thread of the block fetches the inner part as one
// vector: an SP, the vectorization of its inner loop, an FFSP.
bool IsFetchSplit(std::span<const schedule::StepPtr> steps, size_t step);
// Tells whether the step splits a loop into pieces by a number of threads: an SP of one length
// whose inner loop is bound to threadIdx.x.
bool IsThreadSplit(std::span<const schedule::StepPtr> steps, size_t step);

}  // namespace kiln::search
