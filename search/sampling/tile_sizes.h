// Chooses tile sizes for the blanks of a GPU sketch.
//
// Most uniform factorizations are no programs: for a convolution, one in fifteen has a number of
// threads that a block can have, and few of these give the device enough to do. So the tiles of one
// stage are drawn together, repeatedly, until they are legal and accepted; promising tiles are
// accepted more often.
#pragma once

#include <cstdint>
#include <vector>

#include "base/numbers/rng.h"
#include "base/status.h"
#include "compiler/schedule/state.h"
#include "search/space/parameters.h"
#include "search/space/sketch.h"
#include "search/space/task.h"

namespace kiln::search {

// Refuses (FailedPrecondition) if no legal draw was found.
StatusOr<schedule::State> FillGpuTileSizes(const Sketch& sketch, const Task& task,
                                           const Parameters& parameters, Rng& rng);

// The use of the device by the spatial tiles of one stage. The lengths of each split are virtual
// threads, threads and two inner tiles.
struct TileUse {
  int64_t threads = 1;  // threads of one group
  int64_t vthreads = 1;
  int64_t outputs = 1;  // per thread, for all its virtual threads together
  int64_t blocks = 1;
};
TileUse UseOfTiles(const std::vector<int64_t>& extents,
                   const std::vector<std::vector<int64_t>>& lengths);

// Returns the probability that a legal draw is kept, above 0 and at most 1. Draws far outside of
// the range of fast kernels are seldom kept. The default range is 64 to 512 threads, 4 to 64
// outputs per thread (up to 128 with a smaller probability), and a block for every other
// multiprocessor.
double AcceptanceProbability(const TileUse& use, int64_t groups, int64_t parts,
                             int64_t multiprocessors, const Parameters& parameters);

}  // namespace kiln::search
