// Tiles of an online softmax (OS steps): which are worth trying, and which fit a device.
#pragma once

#include <vector>

#include "base/numbers/rng.h"
#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/schedule/state.h"
#include "compiler/target/target.h"

namespace kiln::search {

// Does a unit of the target multiply one of the chain's products? The DAG has such a chain
// (compiler/dag/softmax_chain.h).
bool HasOnlineMatrixUnit(const dag::Dag& dag, const target::Target& target);

// Do units of four warps together multiply both?
bool HasOnlineWarpgroupUnits(const dag::Dag& dag, const target::Target& target);

// The tile with its blanks drawn. What has units of one warp is of those of four together with this
// probability.
schedule::OnlineTile RandomOnlineTile(schedule::OnlineTile tile, double warpgroup_prob, Rng& rng);
// How many there are to draw.
int64_t CountOnlineTiles(const schedule::OnlineTile& tile, bool has_warpgroup_units);
// All tiles one change away: a number is the next one that is drawn, rows or parts go to warps and
// back, or the units are the other ones.
std::vector<schedule::OnlineTile> OnlineTilesNear(const schedule::OnlineTile& tile,
                                                  bool has_warpgroup_units);

// FailedPrecondition names the amount and the limit. The state has a tile without blanks. Lowers it.
Status CheckOnlineLimits(const schedule::State& state, const target::HardwareParams& hardware);

}  // namespace kiln::search
