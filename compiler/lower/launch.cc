#include "compiler/lower/launch.h"

#include <algorithm>
#include <array>

namespace kiln::lower {
namespace {

// Index of the kinds of bound loops, from blockIdx.x on.
constexpr size_t IndexOf(ir::LoopKind kind) {
  return static_cast<size_t>(kind) - static_cast<size_t>(ir::LoopKind::kBlockX);
}
using LaunchExtents = std::array<int64_t, IndexOf(ir::LoopKind::kThreadZ) + 1>;

Status CollectLaunch(ir::Stmt s, LaunchExtents& extents) {
  if (s->kind == ir::StmtKind::kFor && s->loop_kind >= ir::LoopKind::kBlockX) {
    const size_t d = IndexOf(s->loop_kind);
    if (extents[d] != 0 && extents[d] != s->extent) {
      return FailedPrecondition("loops bound to {} have extents {} and {}, expected one extent",
                                ir::LoopKindName(s->loop_kind), extents[d], s->extent);
    }
    extents[d] = s->extent;
  }
  for (ir::Stmt child : s->children()) KILN_RETURN_IF_ERROR(CollectLaunch(child, extents));
  return OkStatus();
}

}  // namespace

ir::LoopKind KindOf(schedule::Annotation annotation) {
  using schedule::Annotation;
  switch (annotation) {
    case Annotation::kUnroll:
      return ir::LoopKind::kUnrolled;
    case Annotation::kVectorize:
      return ir::LoopKind::kVectorized;
    case Annotation::kParallel:
      return ir::LoopKind::kParallel;
    case Annotation::kVThread:
      return ir::LoopKind::kVThread;
    case Annotation::kBlockX:
      return ir::LoopKind::kBlockX;
    case Annotation::kBlockY:
      return ir::LoopKind::kBlockY;
    case Annotation::kBlockZ:
      return ir::LoopKind::kBlockZ;
    case Annotation::kCluster:
      return ir::LoopKind::kCluster;
    case Annotation::kThreadX:
      return ir::LoopKind::kThreadX;
    case Annotation::kThreadY:
      return ir::LoopKind::kThreadY;
    case Annotation::kThreadZ:
      return ir::LoopKind::kThreadZ;
    default:
      return ir::LoopKind::kSerial;
  }
}

Status SetLaunch(ir::Kernel& kernel) {
  LaunchExtents extents = {};
  KILN_RETURN_IF_ERROR(CollectLaunch(kernel.body, extents));
  const auto extent_of = [&](ir::LoopKind first, size_t d) {
    return std::max<int64_t>(1, extents[IndexOf(first) + d]);
  };
  for (size_t d = 0; d < 3; ++d) {
    kernel.grid[d] = extent_of(ir::LoopKind::kBlockX, d);
    kernel.block[d] = extent_of(ir::LoopKind::kThreadX, d);
  }
  kernel.cluster = extent_of(ir::LoopKind::kCluster, 0);
  return OkStatus();
}

}  // namespace kiln::lower
