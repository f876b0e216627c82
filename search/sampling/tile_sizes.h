// Tile sizes for the blanks of a GPU sketch.
//
// Uniform factorizations are mostly no programs: of a convolution's one in fifteen has a number of
// threads that a block can have, and few of those give the device enough to do. So the tiles of one
// stage are drawn together, again and again, until they are legal and, by chance, promising.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "compiler/schedule/state.h"
#include "search/space/parameters.h"
#include "search/space/sketch.h"
#include "search/space/task.h"

namespace kiln::search {

// Refuses (FailedPrecondition) when no legal draw was found.
StatusOr<schedule::State> FillGpuTileSizes(const Sketch& sketch, const Task& task,
                                           const Parameters& parameters, Rng& rng);

// What the spatial tiles of one stage make. Each split's lengths are vthreads, threads and two
// inner tiles.
struct TileUse {
  int64_t threads = 1;  // of one group
  int64_t vthreads = 1;
  int64_t outputs = 1;  // per thread, all virtual ones together
  int64_t blocks = 1;
};
TileUse UseOfTiles(const std::vector<int64_t>& extents,
                   const std::vector<std::vector<int64_t>>& lengths);

// How likely a legal draw is kept, above 0 to 1. What is drawn well outside of where fast kernels
// are found (by default 64 to 512 threads, 4 to 64 outputs per thread, less so up to 128, a block
// for every other multiprocessor) is seldom kept, but is.
double AcceptanceProbability(const TileUse& use, int64_t groups, int64_t parts,
                             int64_t multiprocessors, const Parameters& parameters);

}  // namespace kiln::search
