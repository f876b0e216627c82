// Tiles of an online softmax (OS steps): which are worth trying, and which fit a device.
#pragma once

#include <optional>
#include <vector>

#include "base/numbers/rng.h"
#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/schedule/state.h"
#include "compiler/target/target.h"
#include "search/space/key_splits.h"
#include "search/space/parameters.h"
#include "search/space/task.h"

namespace kiln::search {

// Does a unit of the target multiply one of the chain's products? The DAG has such a chain
// (compiler/dag/softmax_chain.h).
bool HasOnlineMatrixUnit(const dag::Dag& dag, const target::Target& target);

// Do units of four warps together multiply both?
bool HasOnlineWarpgroupUnits(const dag::Dag& dag, const target::Target& target);

// The choices from which tiles of a task are drawn.
struct OnlineSpace {
  bool has_warpgroup_units = false;
  // Absent: each block visits all keys of its rows.
  std::optional<KeySharing> sharing = {};
};
OnlineSpace OnlineSpaceOf(const Task& task, const Parameters& parameters);

// The tile with its blanks drawn. What has units of one warp is of those of four together with this
// probability. If blocks may share keys, a block has no more rows than there are, rounded up.
schedule::OnlineTile RandomOnlineTile(schedule::OnlineTile tile, const OnlineSpace& space,
                                      double warpgroup_prob, Rng& rng);
// How many there are to draw.
int64_t CountOnlineTiles(const schedule::OnlineTile& tile, const OnlineSpace& space);
// All tiles one change away: a number is the next one that is drawn, rows or parts go to warps and
// back, warps change with keys, or the units are the other ones.
std::vector<schedule::OnlineTile> OnlineTilesNear(const schedule::OnlineTile& tile,
                                                  const OnlineSpace& space);

// FailedPrecondition names the amount and the limit. The state has a tile without blanks. Lowers it.
Status CheckOnlineLimits(const schedule::State& state, const target::HardwareParams& hardware);

}  // namespace kiln::search
