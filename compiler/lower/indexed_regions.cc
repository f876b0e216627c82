#include "compiler/lower/indexed_regions.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/ir/traverse.h"

namespace kiln::lower {
namespace {

bool HasLoad(const arith::Linear& form) {
  return std::ranges::any_of(form.terms,
                             [](const arith::Term& term) { return ir::HasLoad(term.atom); });
}

ir::Expr Renamed(ir::Expr e, ir::ExprPool& pool, ProgramLoad in_program) {
  if (!ir::HasLoad(e)) return e;
  std::unordered_map<ir::Expr, ir::Expr> made;
  ir::Visit(e, [&](ir::Expr node) {
    std::vector<ir::Expr> args;
    for (const ir::Expr arg : node->args()) args.push_back(made.at(arg));
    const ir::Expr same = args.empty() ? node : pool.WithArgs(node, args);
    made[node] = node->op == ir::Op::kLoad ? in_program(same) : same;
  });
  return made.at(e);
}

}  // namespace

bool IsChosenIndex(const arith::Linear& form) {
  if (form.constant != 0 || form.terms.size() != 1 || form.terms[0].coefficient != 1) return false;
  ir::Expr atom = form.terms[0].atom;
  while (atom->op == ir::Op::kCast) atom = atom->arg(0);
  return atom->op == ir::Op::kLoad && atom->type.is_int();
}

void NameChosenIndices(Bounds& bounds, ProgramLoad in_program) {
  arith::Simplifier& simplifier = bounds.simplifier;
  const auto rename = [&](arith::Linear& form) {
    if (!HasLoad(form)) return;
    form = simplifier.ToLinear(Renamed(simplifier.ToExpr(form), simplifier.pool(), in_program));
  };
  for (StageBounds& stage : bounds.stages) {
    if (!stage.computed || std::ranges::none_of(stage.region_min, HasLoad)) continue;
    std::ranges::for_each(stage.region_min, rename);
    std::ranges::for_each(stage.axis_values, rename);
    for (std::vector<ir::Expr>* guards : {&stage.guards, &stage.fill_guards}) {
      for (ir::Expr& guard : *guards) guard = Renamed(guard, simplifier.pool(), in_program);
    }
  }
}

}  // namespace kiln::lower
