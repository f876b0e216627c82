// How the tiles that a GPU's threads fetch lie in shared memory: which axis is innermost, and how
// rows are padded. A thread reads its rows of a register tile 16 bytes at once where they are
// contiguous; padding spreads the stores of a transposed tile over the banks.
//
// A layout is two steps, LA and after it SA, on a stage whose loops are still its axes.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "base/numbers/rng.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "search/space/parameters.h"

namespace kiln::search {

// Stages in shared memory of two axes or more that are attached to the stage that reads them,
// ascending. Rows that reductions over threads read (IsKeptRow) are no such stages.
std::vector<int> FetchedStages(const schedule::State& state);

// The axes of a fetched stage that its reader's spatial loops move along: those that can be
// contiguous for a register tile.
std::vector<int> LaneVaryingAxes(const schedule::State& state, int s);

// As it is fetched, or with one of the walked axes innermost; rows as long as they are, a multiple
// of 16 bytes, or an odd multiple of them.
using LayoutSteps = std::array<schedule::StepPtr, 2>;
LayoutSteps RandomLayout(const schedule::State& state, int s, const Parameters& parameters,
                         Rng& rng);

// Every fetched stage gets a layout. Its loops must not have been split or fused.
Status AnnotateLayouts(schedule::State& state, const Parameters& parameters, Rng& rng);

// Pads tiles of columns that units of four warps read to whole lines, where their rows are longer
// than a line and no whole ones: the number of columns may have changed since the layout was given.
// Returns whether a step changed.
bool PadBrokenLines(const schedule::State& state, std::vector<schedule::StepPtr>& steps);

// Gives layouts that put every element where a simpler one does the simpler one's steps, so that
// equal programs are equal schedules; takes hints away that change nothing or do not fit. The
// extents of `filled`, the state of the steps, must be known. Returns whether a step changed.
bool SimplifyLayouts(const schedule::State& filled, std::vector<schedule::StepPtr>& steps);

// Do steps i and i + 1 give a stage its layout?
bool IsLayout(std::span<const schedule::StepPtr> steps, size_t i);

}  // namespace kiln::search
