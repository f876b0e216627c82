// The tile lengths of a schedule's splits, and moves between neighbours.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/numbers/rng.h"
#include "compiler/schedule/step.h"
#include "search/space/parameters.h"

namespace kiln::search {

// The levels of one split, outermost first.
struct Tiles {
  int step = 0;  // number of the SP
  std::vector<int64_t> levels;
  // The level that an rfactor makes parts of, if one does. There are 2 to most_parts parts.
  std::optional<int> parts_level = {};
  int64_t most_parts = 0;
  bool is_cluster = false;  // the parts are the blocks of a cluster: as many as one can have
  bool limit_innermost = true;
  int64_t extent = 0;   // extent of the loop that is split
  bool uneven = false;  // may the tiles cover more than the extent (uneven_tiles.h)?
  size_t kept = 0;      // inner levels that keep their length when uneven tiles are cut

  int64_t covered() const;  // the product of the levels
};

// Returns the splits whose tiles can change, in the order of the steps. Leaves out splits that set
// a number of threads or a vector's width. If `sketch` (the steps with blanks) is not empty, also
// leaves out splits without a blank. The caller sets which splits may be uneven.
std::vector<Tiles> TilesOf(std::span<const schedule::StepPtr> steps,
                           std::span<const schedule::StepPtr> sketch = {});
// Returns the step with these lengths.
schedule::StepPtr WithTiles(const schedule::StepPtr& split, const Tiles& tiles);

// Changes at least one of `all` and returns the numbers of the changed ones; empty if the drawn
// move was not possible. Draws one of these moves:
//   one factor, most often a prime, goes from one level of a split to another
//   two to four such moves, at any splits
//   a factor goes from a to b in one split and from b to a in another: threads and tile areas stay
//   one split is drawn anew
//   if tiles may be uneven: one level becomes a neighbouring power of two
// No innermost level grows beyond max_innermost_split_factor. Uneven tiles waste no more than is
// acceptable, and all other tiles still divide their extent.
std::vector<int> MoveTiles(std::vector<Tiles>& all, const Parameters& parameters, Rng& rng);

}  // namespace kiln::search
