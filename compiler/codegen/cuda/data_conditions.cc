#include "compiler/codegen/cuda/data_conditions.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::Op;
using ExprSet = std::unordered_set<Expr>;

bool IsLazy(Expr e) { return e->op == Op::kIf || e->op == Op::kAnd || e->op == Op::kOr; }

// Adds the nodes that an evaluation of `e` evaluates whatever the values are.
void AddSureNodes(Expr e, ExprSet& sure) {
  if (!sure.insert(e).second) return;
  for (Expr arg : e->args().first(IsLazy(e) ? 1 : e->num_args)) AddSureNodes(arg, sure);
}

bool IsCheap(Expr e) {
  return e->op != Op::kCall && e->op != Op::kIf && e->op != Op::kSelect && e->op != Op::kFloorDiv &&
         e->op != Op::kFloorMod;
}

bool HasComparisonOfFloats(Expr e, ExprSet& seen) {
  if (!seen.insert(e).second) return false;
  if (ir::IsComparison(e->op) && e->arg(0)->type.is_float()) return true;
  return std::ranges::any_of(e->args(), [&](Expr arg) { return HasComparisonOfFloats(arg, seen); });
}

}  // namespace

bool ComparesFloats(Expr condition) {
  ExprSet seen;
  return HasComparisonOfFloats(condition, seen);
}

bool IsEvaluatedWhole(Expr condition, std::span<const Expr> also_read) {
  ExprSet sure;
  AddSureNodes(condition, sure);
  for (Expr e : also_read) AddSureNodes(e, sure);
  bool is_whole = true;
  ir::Visit(condition,
            [&](Expr e) { is_whole &= sure.contains(e) || (IsCheap(e) && e->op != Op::kLoad); });
  return is_whole;
}

}  // namespace kiln::codegen
