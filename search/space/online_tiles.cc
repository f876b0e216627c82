#include "search/space/online_tiles.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/numbers/integers.h"
#include "compiler/dag/softmax_chain.h"
#include "compiler/instructions/bulk_copy.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/warp_registers.h"
#include "search/space/gpu_validity.h"
#include "search/space/matrix_product.h"
#include "search/space/online_copies.h"

namespace kiln::search {
namespace {

using ir::MatrixUnitScope;
using schedule::OnlineTile;

using instructions::kWarpThreads;
constexpr int64_t kPeriod = 1024;  // bytes; of swizzled tiles
// Words of scores and sums that a thread has beside what it computes with; more spill.
constexpr int64_t kMostWords = 208, kOtherWords = 40, kOtherWordsOfBulk = 24;
// Registers of a thread where several groups of four warps share out those of threads that copy
// (compiler/codegen/cuda/bulk_visits.h).
constexpr int64_t kRegistersOfTwoGroups = 240, kRegistersOfThreeGroups = 160;

// A number of the tile and its values, ascending.
struct Choice {
  int32_t OnlineTile::* number;
  std::span<const int32_t> values;
  // Each value as often as it is drawn, in proportion. Empty: all are drawn alike.
  std::span<const int32_t> drawn = {};
};
constexpr int32_t kRows[] = {16, 32}, kKeys[] = {16, 32, 48, 64, 96, 128}, kWarps[] = {1, 2, 4, 8},
                  kDepths[] = {1, 2, 3, 4}, kParts[] = {1, 2, 4};
constexpr Choice kRowChoice = {&OnlineTile::rows, kRows};
constexpr Choice kWarpChoice = {&OnlineTile::warps, kWarps};
constexpr Choice kPartChoice = {&OnlineTile::parts, kParts};
constexpr Choice kChoices[] = {kRowChoice,
                               {&OnlineTile::keys, kKeys},
                               kWarpChoice,
                               {&OnlineTile::depth, kDepths},
                               kPartChoice};
// Rows of an instruction of four warps.
constexpr int64_t kRowsOfWarpgroup = 64;
// Keys of a part: those of an instruction.
constexpr int32_t kLeastKeys = 16;
// Of four warps together.
constexpr int32_t kRowsOfFour[] = {16}, kKeysOfFour[] = {32, 64, 96, 128, 160, 192, 256},
                  kWarpsOfFour[] = {4, 8, 12}, kDepthsOfFour[] = {1, 2, 3}, kPartsOfFour[] = {1};
// Short tiles spend much time between products, and long ones leave no registers to them. Tiles of
// a single buffer do not come in bulk.
constexpr int32_t kDrawnKeysOfFour[] = {32, 64, 64, 96, 96, 128, 128, 128, 160, 160, 192, 256},
                  kDrawnWarpsOfFour[] = {4, 4, 4, 8, 8, 8, 8, 12},
                  kDrawnDepthsOfFour[] = {1, 2, 2, 3};
constexpr Choice kKeyChoiceOfFour = {&OnlineTile::keys, kKeysOfFour, kDrawnKeysOfFour};
constexpr Choice kWarpChoiceOfFour = {&OnlineTile::warps, kWarpsOfFour, kDrawnWarpsOfFour};
constexpr Choice kChoicesOfFour[] = {{&OnlineTile::rows, kRowsOfFour},
                                     kKeyChoiceOfFour,
                                     kWarpChoiceOfFour,
                                     {&OnlineTile::depth, kDepthsOfFour, kDrawnDepthsOfFour},
                                     {&OnlineTile::parts, kPartsOfFour}};

std::span<const Choice> ChoicesOf(MatrixUnitScope unit) {
  if (unit == MatrixUnitScope::kWarpgroup) return kChoicesOfFour;
  return kChoices;
}

bool HasWholeParts(const OnlineTile& tile) { return tile.keys % (kLeastKeys * tile.parts) == 0; }

// With the other units, and the nearest numbers that are drawn for them.
OnlineTile WithUnits(OnlineTile tile, MatrixUnitScope unit) {
  tile.matrix_unit = unit;
  if (unit == MatrixUnitScope::kWarpgroup) {
    tile.splits = 1;
    tile.is_cluster = false;
  }
  for (const auto& [number, values, drawn] : ChoicesOf(unit)) {
    const auto at = std::ranges::lower_bound(values, tile.*number);
    tile.*number = at == values.end() ? values.back() : *at;
  }
  return tile;
}

// The tile with the next value of the number, or the one before; none: there is no such.
std::optional<OnlineTile> Moved(OnlineTile tile, const Choice& choice, int by) {
  const auto at = std::ranges::lower_bound(choice.values, tile.*choice.number);
  const auto next = at - choice.values.begin() + by;
  if (at == choice.values.end() || next < 0 || next >= std::ssize(choice.values))
    return std::nullopt;
  tile.*choice.number = choice.values[static_cast<size_t>(next)];
  return tile;
}

// The tile with no more rows in a block than there are, as far as whole warps allow it.
OnlineTile WithFewRows(OnlineTile tile, int64_t rows) {
  tile.rows = static_cast<int32_t>(std::min<int64_t>(tile.rows, RoundUp(rows, kRows[0])));
  while (tile.warps > 1 && tile.rows * (tile.warps / 2) >= rows) tile.warps /= 2;
  return tile;
}

bool Multiplies(const instructions::MatrixUnit& unit, ir::Type a, ir::Type b) {
  return unit.factor == a && unit.factor == b && unit.sum == ir::kFloat32;
}

}  // namespace

bool HasOnlineMatrixUnit(const dag::Dag& dag, const target::Target& target) {
  const StatusOr<dag::SoftmaxChain> chain = dag::FindSoftmaxChain(dag);
  KILN_CHECK(chain.ok(), "{}", Message(chain.status()));
  return std::ranges::any_of(instructions::MatrixUnits(),
                             [&](const instructions::MatrixUnit& unit) {
                               return HasMatrixUnit(target, unit) &&
                                      (Multiplies(unit, chain->query->type, chain->keys->type) ||
                                       Multiplies(unit, chain->weight->type, chain->values->type));
                             });
}

bool HasOnlineWarpgroupUnits(const dag::Dag& dag, const target::Target& target) {
  const StatusOr<dag::SoftmaxChain> chain = dag::FindSoftmaxChain(dag);
  KILN_CHECK(chain.ok(), "{}", Message(chain.status()));
  return HasWarpgroupUnits(target) &&
         std::ranges::any_of(instructions::MatrixUnits(),
                             [&](const instructions::MatrixUnit& unit) {
                               return unit.factor.bits == 16 &&
                                      Multiplies(unit, chain->query->type, chain->keys->type) &&
                                      Multiplies(unit, chain->weight->type, chain->values->type);
                             });
}

OnlineSpace OnlineSpaceOf(const Task& task, const Parameters& parameters) {
  OnlineSpace space{.has_warpgroup_units = HasOnlineWarpgroupUnits(*task.dag, task.target)};
  const KeySharing sharing = KeySharingOf(task);
  if (MayShareKeys(sharing, parameters)) space.sharing = sharing;
  return space;
}

OnlineTile RandomOnlineTile(OnlineTile tile, const OnlineSpace& space, double warpgroup_prob,
                            Rng& rng) {
  const bool may_share = tile.splits == 0 && space.sharing;
  if (!space.has_warpgroup_units || (may_share && space.sharing->rows < kRowsOfWarpgroup))
    warpgroup_prob = 0;
  if (tile.matrix_unit == MatrixUnitScope::kWarp && Chance(rng, warpgroup_prob))
    tile.matrix_unit = MatrixUnitScope::kWarpgroup;
  for (const auto& [number, values, drawn] : ChoicesOf(tile.matrix_unit)) {
    if (tile.*number == 0) tile.*number = PickFrom(rng, drawn.empty() ? values : drawn);
  }
  while (!HasWholeParts(tile)) tile.parts /= 2;
  if (!may_share) return tile;
  if (tile.matrix_unit != MatrixUnitScope::kWarpgroup)
    tile = WithFewRows(tile, space.sharing->rows);
  const KeySplit split = DrawKeySplit(tile, *space.sharing, rng);
  tile.splits = split.blocks;
  tile.is_cluster = split.is_cluster;
  return tile;
}

namespace {

// Numbers of blocks that share keys, for all tiles of one warp's units.
int64_t CountSharingTiles(OnlineTile tile, const KeySharing& sharing) {
  int64_t tiles = 0;
  for (const int32_t rows : kRows) {
    for (const int32_t keys : kKeys) {
      for (const int32_t warps : kWarps) {
        tile.rows = rows, tile.keys = keys, tile.warps = warps;
        tiles += std::ssize(KeySplitsOf(tile, sharing));
      }
    }
  }
  return tiles * std::ssize(kDepths) * std::ssize(kParts);
}

}  // namespace

int64_t CountOnlineTiles(const OnlineTile& tile, const OnlineSpace& space) {
  const bool may_share = tile.splits == 0 && space.sharing;
  const auto count = [&](MatrixUnitScope unit) {
    int64_t tiles = 1;
    for (const auto& [number, values, drawn] : ChoicesOf(unit)) {
      if (tile.*number == 0) tiles *= std::ssize(values);
    }
    return tiles;
  };
  const bool is_either = space.has_warpgroup_units && tile.matrix_unit == MatrixUnitScope::kWarp;
  const int64_t of_units =
      may_share ? CountSharingTiles(tile, *space.sharing) : count(tile.matrix_unit);
  return of_units + (is_either ? count(MatrixUnitScope::kWarpgroup) : 0);
}

std::vector<OnlineTile> OnlineTilesNear(const OnlineTile& tile, const OnlineSpace& space) {
  std::vector<OnlineTile> near;
  if (tile.matrix_unit == MatrixUnitScope::kWarpgroup)
    near.push_back(WithUnits(tile, MatrixUnitScope::kWarp));
  if (tile.matrix_unit == MatrixUnitScope::kWarp && space.has_warpgroup_units)
    near.push_back(WithUnits(tile, MatrixUnitScope::kWarpgroup));
  for (const int by : {-1, 1}) {
    for (const Choice& choice : ChoicesOf(tile.matrix_unit)) {
      if (const auto next = Moved(tile, choice, by)) near.push_back(*next);
    }
    if (tile.matrix_unit == MatrixUnitScope::kWarpgroup) {
      // Groups that take turns want longer tiles, and blocks that share registers shorter ones.
      for (const int other_by : {-1, 1}) {
        const auto other = Moved(tile, kWarpChoiceOfFour, by);
        if (const auto both = other ? Moved(*other, kKeyChoiceOfFour, other_by) : std::nullopt)
          near.push_back(*both);
      }
      continue;
    }
    for (const Choice& choice : {kRowChoice, kPartChoice}) {
      const auto other = Moved(tile, choice, by);
      if (const auto both = other ? Moved(*other, kWarpChoice, -by) : std::nullopt)
        near.push_back(*both);
    }
  }
  std::erase_if(near, [](const OnlineTile& changed) { return !HasWholeParts(changed); });
  if (!space.sharing) return near;
  for (OnlineTile& changed : near) changed = WithLegalSplit(changed, *space.sharing);
  for (const KeySplit& split : KeySplitsNear(tile, *space.sharing)) {
    near.push_back(tile);
    near.back().splits = split.blocks;
    near.back().is_cluster = split.is_cluster;
  }
  return near;
}

namespace {

bool HasBulkCopies(const schedule::State& state) {
  return state.stage(state.num_stages() - 1).hints[ir::Hint::kBulkCopies] != 0;
}

// Words of scores and sums for which a thread has registers.
int64_t MostWords(const schedule::State& state, int64_t threads) {
  const int64_t blocks =
      std::max<int64_t>(1, state.stage(state.num_stages() - 1).hints[ir::Hint::kMinBlocks]);
  const int64_t copying = CopyingThreads(state), groups = threads / kWarpThreads / 4;
  if (!HasBulkCopies(state))
    return std::min(kMostWords, kRegisters / ((threads + copying) * blocks) - kOtherWords);
  if (groups > 1 && blocks > 1) return 0;
  const int64_t registers = groups == 1   ? kRegisters / ((threads + copying) * blocks)
                            : groups == 2 ? kRegistersOfTwoGroups
                                          : kRegistersOfThreeGroups;
  return std::min(kMostWords, registers - kOtherWordsOfBulk);
}

}  // namespace

Status CheckOnlineLimits(const schedule::State& state, const target::HardwareParams& hardware) {
  KILN_ASSIGN_OR_RETURN(const ir::Program program, lower::Lower(state, {.gpu = true}));
  const int stage = state.num_stages() - 1;
  const auto refuse = [&](std::string_view what, int64_t found, int64_t limit) {
    return FailedPrecondition("stage {} ({}): {} {}, the device has {}", stage,
                              state.stage(stage).op->name(), found, what, limit);
  };
  const bool is_swizzled = state.online()->matrix_unit == MatrixUnitScope::kWarpgroup;
  int64_t shared_bytes = 0, words = 0;
  const lower::WarpRegisters held = lower::FindWarpRegisters(program, program.kernels[0]);
  for (size_t slot = 0; slot < program.buffers.size(); ++slot) {
    const ir::Buffer& buffer = program.buffers[slot];
    if (buffer.scope == ir::Scope::kShared && !held.Holds(static_cast<int32_t>(slot)))
      shared_bytes += RoundUp(buffer.bytes(), is_swizzled ? kPeriod : 16);
    // Each block of a cluster has a part.
    if (buffer.scope == ir::Scope::kCluster)
      shared_bytes += RoundUp(buffer.bytes() / state.online()->splits, 16);
    if (buffer.scope == ir::Scope::kLocal) words += CeilDiv(buffer.bytes(), 4);
  }
  // Those of four warps together have weights beside the next scores.
  for (const auto& [slot, pairs] : held.pairs) words += is_swizzled ? pairs.registers : 0;
  const int64_t threads = kWarpThreads * state.online()->warps * state.online()->parts,
                copying = CopyingThreads(state);
  if (threads + copying > hardware.max_threads_per_block)
    return refuse("threads per block", threads + copying, hardware.max_threads_per_block);
  if (HasBulkCopies(state)) shared_bytes += instructions::kBulkBarrierBytes;
  if (shared_bytes > hardware.max_shared_memory_per_block_bytes) {
    return refuse("bytes of shared memory per block", shared_bytes,
                  hardware.max_shared_memory_per_block_bytes);
  }
  const int64_t most = MostWords(state, threads);
  if (words > most) return refuse("registers for scores and sums of a thread", words, most);
  return OkStatus();
}

}  // namespace kiln::search
