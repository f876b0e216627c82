#include "compiler/codegen/cuda/places.h"

#include <utility>

namespace kiln::codegen {
using arith::Linear;

const Swizzle* SwizzleOrNull(const Swizzles& swizzles, int32_t slot) {
  const auto found = swizzles.find(slot);
  return found == swizzles.end() ? nullptr : &found->second;
}

Place PlaceIn(arith::Simplifier& simplifier, const ir::Buffer& buffer, const Swizzle* swizzle,
              std::vector<Linear> indices) {
  const std::span<const int64_t> shape = buffer.shape;
  if (swizzle != nullptr) {
    const Linear column = indices.back();
    indices.back() = simplifier.FloorMod(column, swizzle->width);
    std::vector<int64_t> in_panel(shape.begin(), shape.end());
    in_panel.back() = swizzle->width;
    if (swizzle->interleaved_rows > 0) {
      Linear& row = indices[indices.size() - 2];
      row = Interleaved(simplifier, row, swizzle->interleaved_rows);
    }
    const Linear offset = arith::Flatten(simplifier, indices, in_panel);
    if (shape.back() == swizzle->width) return {offset, std::nullopt};
    return {offset + simplifier.FloorDiv(column, swizzle->width) * swizzle->panel, std::nullopt};
  }
  if (buffer.scope != ir::Scope::kCluster)
    return {arith::Flatten(simplifier, indices, shape), std::nullopt};
  // The first dimension is the block whose shared memory holds it.
  return {arith::Flatten(simplifier, std::span(indices).subspan(1), shape.subspan(1)), indices[0]};
}

Place PlaceIn(CudaScope& scope, const ir::Program& program, const Swizzles& swizzles, int32_t slot,
              std::span<const ir::Expr> indices) {
  std::vector<Linear> linear;
  linear.reserve(indices.size());
  for (const ir::Expr index : indices) {
    const bool is_index = index->type == ir::kIndex;
    linear.push_back(scope.simplifier().ToLinear(
        is_index ? index : scope.pool().Cast(ir::kIndex, index), &scope.values()));
  }
  return PlaceIn(scope.simplifier(), program.buffers[static_cast<size_t>(slot)],
                 SwizzleOrNull(swizzles, slot), std::move(linear));
}

}  // namespace kiln::codegen
