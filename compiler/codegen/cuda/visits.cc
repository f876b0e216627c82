#include "compiler/codegen/cuda/visits.h"

#include <algorithm>
#include <span>

#include "compiler/codegen/cuda/shared.h"
#include "compiler/instructions/bulk_copy.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/lower/warp_registers.h"

namespace kiln::codegen {
namespace {
using instructions::kWarpgroupThreads;
using ir::Stmt;
using ir::StmtKind;

bool IsBlockBarrier(Stmt stmt) {
  return stmt->kind == StmtKind::kBarrier && !stmt->is_of_cluster && !stmt->is_of_warp &&
         stmt->pending >= 0;
}

// Returns what is inside of a condition, if there is one.
Stmt InCondition(Stmt stmt) { return stmt->kind == StmtKind::kIf ? stmt->body() : stmt; }

// barrier; ..; copies; commit; ..
bool IsVisit(Stmt body) {
  if (body->kind != StmtKind::kSeq || body->num_children < 4) return false;
  const std::span<const Stmt> stmts = body->children();
  const auto commit = std::ranges::find(stmts, StmtKind::kCommit, &ir::StmtNode::kind);
  return IsBlockBarrier(stmts.front()) && commit != stmts.end() && commit + 1 != stmts.end();
}

// Fills in the loops around the one that is found.
Stmt FindIn(Stmt stmt, std::vector<Stmt>& around) {
  const bool is_loop = stmt->kind == StmtKind::kFor;
  if (is_loop && stmt->loop_kind == ir::LoopKind::kSerial && IsVisit(InCondition(stmt->body())))
    return stmt;
  if (is_loop) around.push_back(stmt);
  for (Stmt child : stmt->children()) {
    if (Stmt found = FindIn(child, around); found != nullptr) return found;
  }
  if (is_loop) around.pop_back();
  return nullptr;
}

}  // namespace

Visits FindVisits(const ir::Program& program, const ir::Kernel& kernel) {
  Visits visits;
  if (!WantsBulkCopies(program, kernel)) return visits;
  const lower::WarpRegisters held = lower::FindWarpRegisters(program, kernel);
  if (held.pairs.empty()) return visits;
  visits.loop = FindIn(kernel.body, visits.around);
  const int64_t keys = held.pairs.begin()->second.registers * instructions::kKeysOfPair;
  if (GroupsOf(kernel) > 1) {
    visits.copying_threads = kWarpgroupThreads;
  } else if (keys < instructions::kKeysOfOwnCopies) {
    visits.copying_threads = instructions::kCopyingThreads;
  }
  return visits;
}

std::vector<Stmt> StatementsOf(const Visits& visits) {
  const std::span<const Stmt> all = InCondition(visits.loop->body())->children();
  return {all.begin(), all.end()};
}

int64_t GroupsOf(const ir::Kernel& kernel) { return kernel.block[0] / kWarpgroupThreads; }

int64_t CopyingThreads(const ir::Program& program, const ir::Kernel& kernel) {
  if (!WantsBulkCopies(program, kernel)) return 0;
  const Visits visits = FindVisits(program, kernel);
  return visits.loop == nullptr ? instructions::kCopyingThreads : visits.copying_threads;
}

}  // namespace kiln::codegen
