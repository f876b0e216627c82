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

ir::Expr WithoutCasts(ir::Expr e) {
  while (e->op == ir::Op::kCast) e = e->arg(0);
  return e;
}

// The chosen index with another place.
ir::Expr WithPlace(ir::Expr index, size_t argument, ir::Expr place, ir::ExprPool& pool) {
  std::vector<ir::Expr> args(index->args().begin(), index->args().end());
  const bool is_load = index->op == ir::Op::kLoad;
  args[is_load ? argument : 0] = is_load ? place : WithPlace(index->arg(0), argument, place, pool);
  return pool.WithArgs(index, args);
}

bool HasLoads(const StageBounds& stage) {
  return std::ranges::any_of(stage.region_min, HasLoad) ||
         std::ranges::any_of(stage.axis_values, HasLoad);
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
  const ir::Expr atom = WithoutCasts(form.terms[0].atom);
  return atom->op == ir::Op::kLoad && atom->type.is_int();
}

ir::Expr ChoosingLoad(const arith::Linear& form) { return WithoutCasts(form.terms[0].atom); }

arith::Linear ChosenAt(const ChosenPlaces& chosen, const arith::Linear& place,
                       arith::Simplifier& simplifier) {
  return simplifier.ToLinear(
      WithPlace(chosen.index, chosen.argument, simplifier.ToExpr(place), simplifier.pool()));
}

arith::Linear PlaceInTile(const StageBounds& tile, size_t d, const arith::Linear& index,
                          arith::Simplifier& simplifier) {
  if (tile.chosen.empty() || tile.chosen[d].index == nullptr) return index - tile.region_min[d];
  const ir::Expr place = ChoosingLoad(index)->arg(tile.chosen[d].argument);
  return simplifier.ToLinear(place) - tile.region_min[d];
}

void NameChosenIndices(Bounds& bounds, ProgramLoad in_program) {
  arith::Simplifier& simplifier = bounds.simplifier;
  const auto rename = [&](arith::Linear& form) {
    if (!HasLoad(form)) return;
    form = simplifier.ToLinear(Renamed(simplifier.ToExpr(form), simplifier.pool(), in_program));
  };
  for (StageBounds& stage : bounds.stages) {
    if (!stage.computed || !HasLoads(stage)) continue;
    std::ranges::for_each(stage.region_min, rename);
    std::ranges::for_each(stage.axis_values, rename);
    for (std::vector<ir::Expr>* guards : {&stage.guards, &stage.fill_guards}) {
      for (ir::Expr& guard : *guards) guard = Renamed(guard, simplifier.pool(), in_program);
    }
  }
}

}  // namespace kiln::lower
