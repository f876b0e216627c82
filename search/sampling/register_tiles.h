// Chooses tile sizes of a CPU sketch by rule, as a person would who knows the registers, the vector
// units and the caches of the core.
//
// A tiled stage has the loops S S R S R S. The innermost results are the register tile: each of its
// sums stays in a register while the reduction loop around it runs. A tile is the better the more
// multiply-adds it has for each load, if it has enough sums to hide the latency of one, and the
// less padding the extents need (the analysis of GotoBLAS: K. Goto, R. van de Geijn, ACM TOMS
// 34(3), 2008). The loops around the register tile keep its inputs in the caches.
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

// The registers of a core for one loop nest.
struct CoreRegisters {
  int64_t lanes = 16;      // elements of a vector
  int64_t registers = 32;  // number of vector registers
};
CoreRegisters CoreRegistersOf(const Task& task, const dag::Operator& op);

// The number of results that a register tile has along each spatial axis of `op`. The last axis is
// in vectors. `choices[axis]` has the lengths that may be taken.
using RegisterTile = std::vector<int64_t>;

// Returns the share of the core's multiply-adds that the tile is expected to reach, 0 to 1.
double Efficiency(const dag::Operator& op, const RegisterTile& tile, const CoreRegisters& core);

// Returns the most efficient tiles, the best first, at most `most`.
std::vector<RegisterTile> BestRegisterTiles(const dag::Operator& op,
                                            std::span<const std::vector<int64_t>> choices,
                                            const CoreRegisters& core, int most);

// Fills all blanks of the sketch. Returns at most `most` lists of steps, the most promising first.
// Returns none for a sketch without blanks, which has only its own steps.
std::vector<std::vector<schedule::StepPtr>> FillByRule(const Sketch& sketch, const Task& task,
                                                       const Parameters& parameters, int most);

}  // namespace kiln::search
