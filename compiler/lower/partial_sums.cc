#include "compiler/lower/partial_sums.h"

namespace kiln::lower {
namespace {

using ir::Program;
using ir::Stmt;
using ir::StmtKind;

// A line of all banks, and the multiple at which swizzled buffers start (codegen/cuda/swizzle.h).
constexpr int64_t kLineBytes = 128, kPeriodBytes = 1024;

const ir::Buffer& BufferOf(const Program& program, int32_t slot) {
  return program.buffers[static_cast<size_t>(slot)];
}

ir::Hints& HintsOf(Program& program, Stmt store) {
  return program.stages[static_cast<size_t>(store->stage)].hints;
}

void FindSums(const Program& program, Stmt s, std::set<int32_t>& sums) {
  if (s->kind == StmtKind::kStore && BufferOf(program, s->slot).scope == ir::Scope::kLocal &&
      program.stages[static_cast<size_t>(s->stage)].hints[ir::Hint::kMatrixUnit] != 0)
    sums.insert(s->slot);
  for (Stmt child : s->children()) FindSums(program, child, sums);
}

bool HasWholeLines(const ir::Buffer& buffer) {
  return !buffer.shape.empty() && buffer.shape.back() * buffer.type.bytes() % kLineBytes == 0 &&
         buffer.bytes() % kPeriodBytes == 0;
}

void SwizzleIn(Program& program, const std::set<int32_t>& sums, Stmt s) {
  const bool is_vector = s->kind == StmtKind::kFor && s->loop_kind == ir::LoopKind::kVectorized;
  if (is_vector && s->body()->kind == StmtKind::kStore && IsPartialSum(program, sums, s->body()) &&
      HasWholeLines(BufferOf(program, s->body()->slot)))
    HintsOf(program, s->body())[ir::Hint::kSwizzle] = 1;
  for (Stmt child : s->children()) SwizzleIn(program, sums, child);
}

}  // namespace

std::set<int32_t> SumsOfMatrixUnits(const Program& program) {
  std::set<int32_t> sums;
  for (const ir::Kernel& kernel : program.kernels) FindSums(program, kernel.body, sums);
  return sums;
}

bool IsPartialSum(const Program& program, const std::set<int32_t>& sums, Stmt store) {
  return BufferOf(program, store->slot).scope == ir::Scope::kShared &&
         store->value()->op == ir::Op::kLoad && sums.contains(store->value()->id);
}

void SwizzlePartialSums(Program& program) {
  const std::set<int32_t> sums = SumsOfMatrixUnits(program);
  for (const ir::Kernel& kernel : program.kernels) SwizzleIn(program, sums, kernel.body);
}

}  // namespace kiln::lower
