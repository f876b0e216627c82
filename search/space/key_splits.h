// Blocks that share the keys of an online softmax (OS steps). Few rows with many keys, as in the
// decoding of a language model, have too few blocks for a device if each block visits all keys.
#pragma once

#include <cstdint>
#include <vector>

#include "base/numbers/rng.h"
#include "compiler/schedule/state.h"
#include "search/space/parameters.h"
#include "search/space/task.h"

namespace kiln::search {

// The facts that decide which blocks may share keys.
struct KeySharing {
  // Numbers of the chain (compiler/dag/softmax_chain.h): independent problems, rows and keys of one.
  int64_t problems = 1, rows = 1, keys = 1;
  int64_t multiprocessors = 1;
  int64_t max_cluster_blocks = 1;
};

// The DAG of the task has a softmax chain.
KeySharing KeySharingOf(const Task& task);

// Returns true if rows are so few, and keys so many, that blocks may share keys.
bool MayShareKeys(const KeySharing& sharing, const Parameters& parameters);

struct KeySplit {
  int32_t blocks = 1;
  bool is_cluster = false;
  bool operator==(const KeySplit&) const = default;
};

// Returns the numbers of blocks that a tile without blanks may have for its rows: 1, then those
// that a second kernel joins, then those of clusters, each ascending. Each block has a tile of
// keys, and all together are at most four for each multiprocessor.
std::vector<KeySplit> KeySplitsOf(const schedule::OnlineTile& tile, const KeySharing& sharing);

// Draws one of these. Those that fill the device are drawn; the largest number if none does.
KeySplit DrawKeySplit(const schedule::OnlineTile& tile, const KeySharing& sharing, Rng& rng);

// Returns the next larger and the next smaller number of the same kind, and the nearest one of the
// other kind.
std::vector<KeySplit> KeySplitsNear(const schedule::OnlineTile& tile, const KeySharing& sharing);

// Returns the tile with the nearest number of blocks that it may have.
schedule::OnlineTile WithLegalSplit(schedule::OnlineTile tile, const KeySharing& sharing);

}  // namespace kiln::search
