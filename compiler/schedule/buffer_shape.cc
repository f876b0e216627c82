#include "compiler/schedule/buffer_shape.h"

#include <algorithm>

#include "compiler/ir/matrix_unit_scope.h"

namespace kiln::schedule {
namespace {

bool AlignsToLines(const Stage& stage) {
  return stage.align_factor * stage.op->type().bytes() % kLineBytes == 0 &&
         stage.align_offset % stage.align_factor == 0;
}

}  // namespace

bool IsSwizzled(const State& state, int s) {
  const Stage& stage = state.stage(s);
  if (!stage.asks_for_shared()) return false;
  const Attach& at = state.attach(s);
  return stage.hints[ir::Hint::kSwizzle] != 0 ||
         (at.kind == Attach::kIter &&
          ir::MatrixUnitScopeOf(state.stage(at.stage).hints) == ir::MatrixUnitScope::kWarpgroup);
}

std::vector<int64_t> RegionOf(const Stage& stage) {
  std::vector<int64_t> region;
  for (size_t axis = 0; axis < stage.op->axes().size(); ++axis)
    region.push_back(std::max<int64_t>(stage.iters[axis].extent, 1));
  return region;
}

std::vector<int64_t> BufferShape(const Stage& stage, std::span<const int64_t> region,
                                 bool is_swizzled) {
  const int rank = static_cast<int>(region.size());
  std::vector<int64_t> shape(rank);
  // The dimension inside the aligned axis.
  int inner = rank;
  for (int d = 0; d < rank; ++d) {
    shape[d] = region[AxisOfDimension(stage, d)];
    if (AxisOfDimension(stage, d) == stage.align_axis) inner = d + 1;
  }
  if (inner >= rank || (is_swizzled && !AlignsToLines(stage))) return shape;
  // Enlarges the dimension until the stride of the aligned axis fits storage_align.
  int64_t rest = 1;
  for (int d = inner + 1; d < rank; ++d) rest *= shape[d];
  for (int64_t extent = shape[inner]; extent < shape[inner] + stage.align_factor; ++extent) {
    if ((extent * rest) % stage.align_factor == stage.align_offset % stage.align_factor) {
      shape[inner] = extent;
      break;
    }
  }
  return shape;
}

}  // namespace kiln::schedule
