#include "base/numbers/integers.h"
#include "compiler/dag/softmax_chain.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

// Rows of an instruction of a matrix unit, and terms of an instruction for 16-bit floats.
constexpr int kRows = 16;

Status CheckMultiple(std::string_view what, int found, int most) {
  if (found >= 0 && found <= most && found % kRows == 0) return OkStatus();
  return InvalidArgument("{} {}; expected a multiple of {} up to {}", found, what, kRows, most);
}

Status CheckRange(std::string_view what, int found, int most) {
  if (found >= 0 && found <= most) return OkStatus();
  return InvalidArgument("{} {}; expected 1 to {}", found, what, most);
}

// Four warps together must have 64 rows that follow each other.
Status CheckMatrixUnit(const OnlineTile& tile) {
  constexpr auto kWarpgroupWarps = static_cast<int>(instructions::kWarpgroupWarps);
  const int unit = static_cast<int>(tile.matrix_unit);
  if (unit < 0 || unit > static_cast<int>(ir::MatrixUnitScope::kWarpgroup))
    return InvalidArgument("matrix unit {}; expected 0, 1 (of one warp) or 2 (of four)", unit);
  if (tile.matrix_unit != ir::MatrixUnitScope::kWarpgroup) return OkStatus();
  if (tile.parts > 1)
    return InvalidArgument("{} parts of the keys; expected 1 for the units of four warps",
                           tile.parts);
  if ((tile.rows == 0 || tile.rows == kRows) && tile.warps % kWarpgroupWarps == 0)
    return OkStatus();
  return InvalidArgument(
      "{} warps of {} rows; expected a multiple of {} warps of {} rows for the units of four warps",
      tile.warps, tile.rows, kWarpgroupWarps, kRows);
}

// Every block must have a tile of keys.
Status CheckSplits(const OnlineTile& tile, const dag::SoftmaxChain& chain) {
  if (tile.splits > 1 && tile.matrix_unit == ir::MatrixUnitScope::kWarpgroup)
    return InvalidArgument("{} blocks share the keys; expected 1 for the units of four warps",
                           tile.splits);
  const bool is_power = (tile.splits & (tile.splits - 1)) == 0;
  if (tile.is_cluster &&
      (tile.splits == 1 || tile.splits > OnlineSoftmaxStep::kMaxCluster || !is_power)) {
    return InvalidArgument("{} blocks share the keys in a cluster; expected 2, 4 or 8",
                           tile.splits);
  }
  if (tile.splits <= 1 || tile.keys == 0) return OkStatus();
  const int64_t tiles = CeilDiv(chain.extent(chain.key), int64_t{tile.keys});
  if ((tile.splits - 1) * CeilDiv(tiles, int64_t{tile.splits}) < tiles) return OkStatus();
  return InvalidArgument(
      "{} blocks share {} tiles of keys, {} in each; expected so few blocks that the last one has "
      "a tile",
      tile.splits, tiles, CeilDiv(tiles, int64_t{tile.splits}));
}

}  // namespace

StatusOr<StepPtr> OnlineSoftmaxStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  OnlineTile tile;
  tile.rows = reader.Int("rows of a warp");
  tile.keys = reader.Int("keys");
  tile.warps = reader.Int("warps");
  tile.depth = reader.Int("depth");
  const int unit = reader.Int("matrix unit");
  tile.matrix_unit = static_cast<ir::MatrixUnitScope>(unit);
  if (reader.HasNext()) tile.parts = reader.Int("parts of the keys");
  if (reader.HasNext()) tile.splits = reader.Int("blocks that share the keys");
  if (reader.HasNext()) tile.is_cluster = reader.Flag("whether these are a cluster");
  return reader.Make<OnlineSoftmaxStep>(stage, tile);
}

Status OnlineSoftmaxStep::ApplyTo(State& state) const {
  KILN_RETURN_IF_ERROR(CheckComputes(state, stage_id));
  KILN_RETURN_IF_ERROR(CheckMultiple("rows of a warp", tile.rows, kMaxRows));
  KILN_RETURN_IF_ERROR(CheckMultiple("keys of a tile", tile.keys, kMaxKeys));
  KILN_RETURN_IF_ERROR(CheckRange("warps", tile.warps, kMaxWarps));
  KILN_RETURN_IF_ERROR(CheckRange("tiles of keys at once", tile.depth, kMaxDepth));
  KILN_RETURN_IF_ERROR(CheckRange("parts of the keys", tile.parts, kMaxParts));
  KILN_RETURN_IF_ERROR(CheckRange("blocks that share the keys", tile.splits, kMaxSplits));
  if (!tile.has_blank() && tile.keys % (kRows * tile.parts) != 0) {
    return InvalidArgument("{} keys of a tile in {} parts; expected a multiple of {} in each",
                           tile.keys, tile.parts, kRows);
  }
  if (tile.warps * tile.parts > 2 * kMaxWarps) {
    return InvalidArgument("{} warps for each of {} parts; expected at most {} in all", tile.warps,
                           tile.parts, 2 * kMaxWarps);
  }
  KILN_RETURN_IF_ERROR(CheckMatrixUnit(tile));
  if (!state.steps().empty())
    return InvalidArgument("it is the whole schedule; expected no steps before it");
  const StatusOr<dag::SoftmaxChain> chain = dag::FindSoftmaxChain(*state.dag());
  if (!chain.ok()) return InvalidArgument("{}", Message(chain.status()));
  if (chain->output != stage_id) {
    return InvalidArgument("the softmax ends in stage {} ({}); expected the step there",
                           chain->output, state.dag()->op(chain->output).name());
  }
  KILN_RETURN_IF_ERROR(CheckSplits(tile, *chain));
  for (int s = 0; s < state.num_stages(); ++s) {
    if (s != stage_id && !state.stage(s).is_placeholder())
      state.SetAttach(s, {.kind = Attach::kInlined});
  }
  state.MutableStage(stage_id).online = tile;
  return OkStatus();
}

std::string OnlineSoftmaxStep::ToJson() const {
  // A number is left out with all that follow it if these have the values of a tile of one block.
  std::string last;
  if (tile.is_cluster) last = ", 1";
  if (tile.splits != 1 || !last.empty()) last = fmt::format(", {}{}", tile.splits, last);
  if (tile.parts != 1 || !last.empty()) last = fmt::format(", {}{}", tile.parts, last);
  return fmt::format("[\"OS\", {}, {}, {}, {}, {}, {}{}]", stage_id, tile.rows, tile.keys,
                     tile.warps, tile.depth, static_cast<int>(tile.matrix_unit), last);
}

uint64_t OnlineSoftmaxStep::Hash() const {
  StepHash hash(kTag);
  hash.Add(stage_id).Add(tile.rows).Add(tile.keys).Add(tile.warps).Add(tile.depth);
  hash.Add(static_cast<int>(tile.matrix_unit));
  if (tile.parts != 1) hash.Add(tile.parts);
  if (tile.splits != 1) hash.Add(-tile.splits).Add(static_cast<int>(tile.is_cluster));
  return hash.value();
}

uint64_t OnlineSoftmaxStep::ShapeHash() const {
  const bool has_unit = tile.matrix_unit != ir::MatrixUnitScope::kNone;
  return StepHash(kTag).Add(stage_id).Add(has_unit).value();
}

}  // namespace kiln::schedule
