#include "search/space/key_splits.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/numbers/integers.h"
#include "compiler/dag/softmax_chain.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::search {
namespace {

using schedule::OnlineTile;
using Step = schedule::OnlineSoftmaxStep;

// Rows of the smallest block.
constexpr int64_t kLeastRows = 16;
// Blocks for each multiprocessor: with more of the smallest ones keys need not be shared, and no
// more than the most are proposed.
constexpr int64_t kEnoughBlocks = 2, kMostBlocks = 4;
// A number of blocks is this many times as large as the previous one, at least.
constexpr double kNextNumber = 1.2;
// Shares of the multiprocessors that have a block when the device counts as filled. Clusters need
// no second kernel.
constexpr double kFilled = 0.5, kFilledByClusters = 1.0 / 3;

int64_t BlocksOf(const OnlineTile& tile, const KeySharing& sharing) {
  return sharing.problems * CeilDiv(sharing.rows, int64_t{tile.rows} * tile.warps);
}

bool IsFilled(const OnlineTile& tile, const KeySplit& split, const KeySharing& sharing) {
  const double share = split.is_cluster ? kFilledByClusters : kFilled;
  return static_cast<double>(BlocksOf(tile, sharing) * split.blocks) >=
         share * static_cast<double>(sharing.multiprocessors);
}

double Distance(const KeySplit& a, const KeySplit& b) {
  return std::abs(std::log(static_cast<double>(a.blocks) / b.blocks));
}

// Returns the nearest number of blocks, of clusters or of others.
std::optional<KeySplit> NearestOf(const std::vector<KeySplit>& splits, const KeySplit& wanted,
                                  bool is_cluster) {
  std::optional<KeySplit> nearest;
  for (const KeySplit& split : splits) {
    if (split.is_cluster != is_cluster) continue;
    if (!nearest || Distance(split, wanted) < Distance(*nearest, wanted)) nearest = split;
  }
  return nearest;
}

}  // namespace

KeySharing KeySharingOf(const Task& task) {
  const StatusOr<dag::SoftmaxChain> chain = dag::FindSoftmaxChain(*task.dag);
  KILN_CHECK(chain.ok(), "{}", Message(chain.status()));
  KeySharing sharing{.rows = chain->extent(chain->row),
                     .keys = chain->extent(chain->key),
                     .multiprocessors = std::max<int64_t>(1, task.device.multiprocessors),
                     .max_cluster_blocks = task.device.max_cluster_blocks};
  for (const int32_t var : chain->batch) sharing.problems *= chain->extent(var);
  return sharing;
}

bool MayShareKeys(const KeySharing& sharing, const Parameters& parameters) {
  return parameters.key_splits && sharing.keys >= parameters.least_split_keys &&
         sharing.problems * CeilDiv(sharing.rows, kLeastRows) <
             kEnoughBlocks * sharing.multiprocessors;
}

std::vector<KeySplit> KeySplitsOf(const OnlineTile& tile, const KeySharing& sharing) {
  std::vector<KeySplit> splits = {{}};
  if (tile.matrix_unit == ir::MatrixUnitScope::kWarpgroup) return splits;
  const int64_t tiles = CeilDiv(sharing.keys, int64_t{tile.keys});
  const int64_t most = std::min<int64_t>(
      {Step::kMaxSplits, tiles, kMostBlocks * sharing.multiprocessors / BlocksOf(tile, sharing)});
  // A number that some number of tiles for each block gives leaves no block without a tile.
  const auto is_legal = [&](int64_t blocks) {
    return blocks <= most && CeilDiv(tiles, CeilDiv(tiles, blocks)) == blocks;
  };
  for (int64_t blocks = 2; blocks <= most; ++blocks) {
    if (is_legal(blocks) && static_cast<double>(blocks) >= kNextNumber * splits.back().blocks)
      splits.push_back({.blocks = static_cast<int32_t>(blocks)});
  }
  const int64_t most_in_cluster = std::min<int64_t>(Step::kMaxCluster, sharing.max_cluster_blocks);
  for (int64_t blocks = 2; blocks <= most_in_cluster; blocks *= 2) {
    if (is_legal(blocks))
      splits.push_back({.blocks = static_cast<int32_t>(blocks), .is_cluster = true});
  }
  return splits;
}

KeySplit DrawKeySplit(const OnlineTile& tile, const KeySharing& sharing, Rng& rng) {
  const std::vector<KeySplit> splits = KeySplitsOf(tile, sharing);
  std::vector<KeySplit> filling;
  for (const KeySplit& split : splits) {
    if (IsFilled(tile, split, sharing)) filling.push_back(split);
  }
  if (!filling.empty()) return PickFrom(rng, filling);
  return std::ranges::max(splits, {}, &KeySplit::blocks);
}

std::vector<KeySplit> KeySplitsNear(const OnlineTile& tile, const KeySharing& sharing) {
  const KeySplit now{tile.splits, tile.is_cluster};
  const std::vector<KeySplit> splits = KeySplitsOf(tile, sharing);
  std::vector<KeySplit> smaller, larger, near;
  for (const KeySplit& split : splits) {
    if (split.blocks > 1 && split.is_cluster != now.is_cluster) continue;
    if (split.blocks < now.blocks) smaller.push_back(split);
    if (split.blocks > now.blocks) larger.push_back(split);
  }
  for (const auto& side : {smaller, larger}) {
    if (const auto next = NearestOf(side, now, now.is_cluster)) near.push_back(*next);
  }
  const auto other = NearestOf(splits, now, !now.is_cluster);
  if (other && std::ranges::find(near, *other) == near.end()) near.push_back(*other);
  std::erase(near, now);
  return near;
}

OnlineTile WithLegalSplit(OnlineTile tile, const KeySharing& sharing) {
  const KeySplit now{tile.splits, tile.is_cluster};
  const std::vector<KeySplit> splits = KeySplitsOf(tile, sharing);
  const KeySplit split = NearestOf(splits, now, now.is_cluster).value_or(KeySplit{});
  tile.splits = split.blocks;
  tile.is_cluster = split.is_cluster;
  return tile;
}

}  // namespace kiln::search
