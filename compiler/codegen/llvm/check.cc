#include "compiler/codegen/llvm/check.h"

#include <algorithm>
#include <vector>

#include "proto/cpu_abi.h"

namespace kiln::codegen {
namespace {
using ir::LoopKind;
using ir::Stmt;
using ir::StmtKind;

constexpr int64_t kMaxLocalBytes = KILN_CPU_STACK_BYTES / 4;

bool IsGpuLoop(LoopKind kind) { return kind >= LoopKind::kBlockX; }

Status CheckStmt(const ir::Program& program, Stmt stmt, std::vector<bool>& allocated) {
  switch (stmt->kind) {
    case StmtKind::kFor:
      if (IsGpuLoop(stmt->loop_kind)) {
        return InvalidArgument("loop '{}' is bound to {}, which a CPU does not have",
                               program.vars[static_cast<size_t>(stmt->var)].name,
                               ir::LoopKindName(stmt->loop_kind));
      }
      break;
    case StmtKind::kBarrier:
    case StmtKind::kCommit:
      return InvalidArgument(
          "the program has a barrier between GPU threads, which a CPU does not have");
    case StmtKind::kInstruction:
      return InvalidArgument("the program has instruction '{}' of a GPU, which a CPU does not have",
                             program.instructions[static_cast<size_t>(stmt->instruction)]);
    case StmtKind::kAlloc:
      allocated[static_cast<size_t>(stmt->slot)] = true;
      break;
    default:
      break;
  }
  for (Stmt child : stmt->children()) KILN_RETURN_IF_ERROR(CheckStmt(program, child, allocated));
  return OkStatus();
}

Status CheckLocalBytes(const ir::Program& program, const ir::Kernel& kernel,
                       const std::vector<bool>& allocated) {
  int64_t total = 0;
  const ir::Buffer* largest = nullptr;
  for (size_t slot = 0; slot < allocated.size(); ++slot) {
    if (!allocated[slot]) continue;
    const ir::Buffer& buffer = program.buffers[slot];
    total += std::min(buffer.bytes(), kMaxLocalBytes + 1);
    if (largest == nullptr || buffer.bytes() > largest->bytes()) largest = &buffer;
  }
  if (total <= kMaxLocalBytes) return OkStatus();
  return ResourceExhausted(
      "local buffers of kernel '{}' need {} bytes of stack, {} are allowed; the largest is '{}' "
      "with {} bytes: attach "
      "its stage deeper or tile it smaller",
      kernel.name, total, kMaxLocalBytes, largest->name, largest->bytes());
}
}  // namespace

Status CheckCpuProgram(const ir::Program& program) {
  for (const ir::Buffer& buffer : program.buffers) {
    if (buffer.scope == ir::Scope::kShared) {
      return InvalidArgument("buffer '{}' is in GPU shared memory, which a CPU does not have",
                             buffer.name);
    }
  }
  for (const ir::Kernel& kernel : program.kernels) {
    std::vector<bool> allocated(program.buffers.size());
    KILN_RETURN_IF_ERROR(CheckStmt(program, kernel.body, allocated));
    KILN_RETURN_IF_ERROR(CheckLocalBytes(program, kernel, allocated));
  }
  return OkStatus();
}

}  // namespace kiln::codegen
