#include "compiler/codegen/cuda_shared.h"

namespace kiln::codegen {
namespace {
constexpr int64_t kAlignment = 16;  // of the widest vector access

void Collect(const ir::Program& program, ir::Stmt stmt, SharedLayout& layout) {
  if (stmt->kind == ir::StmtKind::kAlloc) {
    const ir::Buffer& buffer = program.buffers[static_cast<size_t>(stmt->slot)];
    if (buffer.scope == ir::Scope::kShared) {
      layout.buffers.push_back({stmt->slot, layout.bytes});
      layout.bytes += (buffer.bytes() + kAlignment - 1) / kAlignment * kAlignment;
    }
  }
  for (ir::Stmt child : stmt->children()) Collect(program, child, layout);
}
}  // namespace

SharedLayout LayOutShared(const ir::Program& program, const ir::Kernel& kernel) {
  SharedLayout layout;
  Collect(program, kernel.body, layout);
  return layout;
}

}  // namespace kiln::codegen
