#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const OnlineSoftmaxStep& step, SourcePrinter& out) {
  const OnlineTile& tile = step.tile;
  out.Line("s[{}].online_softmax(rows={}, keys={}, warps={}, depth={}, matrix_unit={}{}{}{})",
           out.Stage(step.stage_id), tile.rows, tile.keys, tile.warps, tile.depth,
           static_cast<int>(tile.matrix_unit),
           tile.parts == 1 ? "" : fmt::format(", parts={}", tile.parts),
           tile.splits == 1 ? "" : fmt::format(", splits={}", tile.splits),
           tile.is_cluster ? ", is_cluster=1" : "");
}

StatusOr<StepPtr> ReadOnlineSoftmax(SourceCall& call) {
  using Step = OnlineSoftmaxStep;
  OnlineTile tile;
  tile.rows = static_cast<int32_t>(call.IntOf("rows", 0, Step::kMaxRows));
  tile.keys = static_cast<int32_t>(call.IntOf("keys", 0, Step::kMaxKeys));
  tile.warps = static_cast<int32_t>(call.IntOf("warps", 0, Step::kMaxWarps));
  tile.depth = static_cast<int32_t>(call.IntOf("depth", 0, Step::kMaxDepth));
  constexpr auto kMaxWarpsOfUnit = static_cast<int64_t>(ir::MatrixUnitScope::kWarpgroup);
  tile.matrix_unit =
      static_cast<ir::MatrixUnitScope>(call.IntOf("matrix_unit", 0, kMaxWarpsOfUnit));
  if (call.Has("parts")) tile.parts = static_cast<int32_t>(call.IntOf("parts", 0, Step::kMaxParts));
  if (call.Has("splits"))
    tile.splits = static_cast<int32_t>(call.IntOf("splits", 0, Step::kMaxSplits));
  if (call.Has("is_cluster")) tile.is_cluster = call.IntOf("is_cluster", 0, 1) == 1;
  return call.Make<Step>(call.stage(), tile);
}

}  // namespace kiln::schedule
