// Tile sizes of a CPU sketch by rule: what a person would write who knows the registers, the vector
// units and the caches of the core.
//
// A tiled stage has the loops S S R S R S. Of its innermost results, the register tile, every sum
// stays in a register while the reduction loop around it runs. It is as good as the ratio of
// multiply-adds to loads, as many as hide the latency of one, and as little padding as the extents
// allow (the analysis of GotoBLAS: K. Goto, R. van de Geijn, ACM TOMS 34(3), 2008). The loops
// around it keep what it reads in the caches.
//
// Pure functions; deterministic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/schedule/step.h"
#include "search/space/parameters.h"
#include "search/space/sketch.h"
#include "search/space/task.h"

namespace kiln::search {

// What a core has for one loop nest.
struct CoreRegisters {
  int64_t lanes = 16;      // elements of a vector
  int64_t registers = 32;  // vectors
};
CoreRegisters CoreRegistersOf(const Task& task, const dag::Operator& op);

// One element per spatial axis of `op`: how many of its results a register tile holds. The last
// axis is the one in vectors. `choices[axis]`: the lengths that may be taken.
using RegisterTile = std::vector<int64_t>;

// The share of the core's multiply-adds that the tile is expected to reach, 0 to 1.
double Efficiency(const dag::Operator& op, const RegisterTile& tile, const CoreRegisters& core);

// The most efficient tiles, the best first, at most `most`.
std::vector<RegisterTile> BestRegisterTiles(const dag::Operator& op,
                                            std::span<const std::vector<int64_t>> choices,
                                            const CoreRegisters& core, int most);

// Lists of steps: those of the sketch with all blanks filled, at most `most`, the most promising
// first. None for a sketch without blanks, whose steps are all there is.
std::vector<std::vector<schedule::StepPtr>> FillByRule(const Sketch& sketch, const Task& task,
                                                       const Parameters& parameters, int most);

}  // namespace kiln::search
