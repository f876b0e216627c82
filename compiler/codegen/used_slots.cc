#include "compiler/codegen/used_slots.h"

#include <algorithm>

#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {

void Collect(ir::Stmt stmt, UsedNames& used) {
  for (ir::Expr e : stmt->exprs()) {
    ir::Visit(e, [&](ir::Expr node) {
      if (node->op == ir::Op::kVar) used.vars.push_back(node->id);
      if (node->op == ir::Op::kLoad) used.slots.push_back(node->id);
    });
  }
  if (stmt->kind == ir::StmtKind::kStore || stmt->kind == ir::StmtKind::kAlloc)
    used.slots.push_back(stmt->slot);
  for (ir::Stmt child : stmt->children()) Collect(child, used);
}

void SortAndThin(std::vector<int32_t>& numbers) {
  std::ranges::sort(numbers);
  const auto repeated = std::ranges::unique(numbers);
  numbers.erase(repeated.begin(), repeated.end());
}

}  // namespace

UsedNames NamesUsedIn(ir::Stmt stmt) {
  UsedNames used;
  Collect(stmt, used);
  SortAndThin(used.slots);
  SortAndThin(used.vars);
  return used;
}

std::vector<int32_t> ArgumentsUsedBy(const ir::Program& program, const ir::Kernel& kernel) {
  std::vector<int32_t> slots = NamesUsedIn(kernel.body).slots;
  std::erase_if(slots, [&](int32_t slot) {
    return program.buffers[static_cast<size_t>(slot)].scope >= ir::Scope::kShared;
  });
  return slots;
}

}  // namespace kiln::codegen
