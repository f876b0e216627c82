// Tile lengths of a schedule's splits, and moves between neighbours.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/rng.h"
#include "compiler/schedule/step.h"
#include "search/space/parameters.h"

namespace kiln::search {

// The levels of one split, outermost first.
struct Tiles {
  int step = 0;  // number of the SP
  std::vector<int64_t> levels;
  // The level that an rfactor makes parts of, if one does. There are 2 to most_parts.
  std::optional<int> parts_level = {};
  int64_t most_parts = 0;
  bool is_cluster = false;  // the parts are the blocks of a cluster: as many as one can have
  bool limit_innermost = true;
  int64_t extent = 0;   // of the loop that is split
  bool uneven = false;  // may they cover more than that (uneven_tiles.h)?
  size_t kept = 0;      // inner levels that are not cut then

  int64_t covered() const;  // the product of the levels
};

// Splits that have something to move, in the order of the steps; not those that set a number of
// threads or a vector's width, and not those that `sketch` (if not empty, the steps with blanks)
// leaves no choice for. What may be uneven is left to the caller.
std::vector<Tiles> TilesOf(std::span<const schedule::StepPtr> steps,
                           std::span<const schedule::StepPtr> sketch = {});
// The step with these lengths.
schedule::StepPtr WithTiles(const schedule::StepPtr& split, const Tiles& tiles);

// Changes at least one of `all` and returns the numbers of those changed; none: this move was not
// possible. By chance:
//   one factor goes from one level of a split to another: most often a prime one
//   two to four such moves, at any splits
//   a factor goes from a to b in one split and from b to a in another: threads and tile areas stay
//   one split is drawn anew
//   where tiles may be uneven: one level becomes the next power of two
// No innermost level grows beyond max_innermost_split_factor, uneven tiles waste no more than is
// acceptable, and other ones divide their extent still.
std::vector<int> MoveTiles(std::vector<Tiles>& all, const Parameters& parameters, Rng& rng);

}  // namespace kiln::search
