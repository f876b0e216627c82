#include "compiler/codegen/cuda/shared.h"

#include <algorithm>
#include <functional>

#include "base/numbers/integers.h"
#include "compiler/codegen/cuda/swizzle.h"
#include "compiler/instructions/bulk_copy.h"
#include "compiler/lower/warp_registers.h"

namespace kiln::codegen {
namespace {
constexpr int64_t kAlignment = 16;  // of the widest vector access

int32_t HintOf(const ir::Program& program, ir::Stmt stmt) {
  int32_t value =
      stmt->kind == ir::StmtKind::kStore
          ? program.stages[static_cast<size_t>(stmt->stage)].hints[ir::Hint::kBulkCopies]
          : 0;
  for (ir::Stmt child : stmt->children()) value = std::max(value, HintOf(program, child));
  return value;
}

void Collect(const ir::Program& program, ir::Stmt stmt, const Swizzles& swizzles,
             const lower::WarpRegisters& held, SharedLayout& layout) {
  if (stmt->kind == ir::StmtKind::kAlloc && !held.Holds(stmt->slot)) {
    const ir::Buffer& buffer = program.buffers[static_cast<size_t>(stmt->slot)];
    if (buffer.scope == ir::Scope::kShared || buffer.scope == ir::Scope::kCluster) {
      const auto swizzle = swizzles.find(stmt->slot);
      const int64_t period = swizzle == swizzles.end() ? 0 : 8 * swizzle->second.bytes;
      layout.buffers.push_back({stmt->slot, 0, std::max(kAlignment, period)});
    }
  }
  for (ir::Stmt child : stmt->children()) Collect(program, child, swizzles, held, layout);
}
}  // namespace

int32_t BulkCopiesOf(const ir::Program& program, const ir::Kernel& kernel) {
  return HintOf(program, kernel.body);
}

int64_t ElementsInBlock(const ir::Buffer& buffer) {
  const int64_t elements = buffer.num_elements();
  return buffer.scope == ir::Scope::kCluster ? elements / buffer.shape[0] : elements;
}

SharedLayout LayOutShared(const ir::Program& program, const ir::Kernel& kernel) {
  SharedLayout layout;
  Collect(program, kernel.body, FindSwizzles(program, kernel),
          lower::FindWarpRegisters(program, kernel), layout);
  std::ranges::stable_sort(layout.buffers, std::greater<>(), &SharedBuffer::alignment);
  for (SharedBuffer& place : layout.buffers) {
    const ir::Buffer& buffer = program.buffers[static_cast<size_t>(place.slot)];
    place.offset = RoundUp(layout.bytes, place.alignment);
    layout.bytes =
        place.offset + RoundUp(ElementsInBlock(buffer) * buffer.type.bytes(), kAlignment);
    layout.alignment = std::max(layout.alignment, place.alignment);
  }
  if (WantsBulkCopies(program, kernel)) {
    layout.bulk_barriers = layout.bytes;
    layout.bytes += instructions::kBulkBarrierBytes;
  }
  return layout;
}

}  // namespace kiln::codegen
