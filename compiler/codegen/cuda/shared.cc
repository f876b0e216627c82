#include "compiler/codegen/cuda/shared.h"

#include "base/integers.h"

namespace kiln::codegen {
namespace {
constexpr int64_t kAlignment = 16;  // of the widest vector access

void Collect(const ir::Program& program, ir::Stmt stmt, SharedLayout& layout) {
  if (stmt->kind == ir::StmtKind::kAlloc) {
    const ir::Buffer& buffer = program.buffers[static_cast<size_t>(stmt->slot)];
    if (buffer.scope == ir::Scope::kShared || buffer.scope == ir::Scope::kCluster) {
      layout.buffers.push_back({stmt->slot, layout.bytes});
      const int64_t bytes = ElementsInBlock(buffer) * buffer.type.bytes();
      layout.bytes += RoundUp(bytes, kAlignment);
    }
  }
  for (ir::Stmt child : stmt->children()) Collect(program, child, layout);
}
}  // namespace

int64_t ElementsInBlock(const ir::Buffer& buffer) {
  const int64_t elements = buffer.num_elements();
  return buffer.scope == ir::Scope::kCluster ? elements / buffer.shape[0] : elements;
}

SharedLayout LayOutShared(const ir::Program& program, const ir::Kernel& kernel) {
  SharedLayout layout;
  Collect(program, kernel.body, layout);
  return layout;
}

}  // namespace kiln::codegen
