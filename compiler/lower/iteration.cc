#include "compiler/lower/iteration.h"

#include <algorithm>

#include "base/numbers/integers.h"

namespace kiln::lower {
namespace {

using schedule::Annotation;
using schedule::Relation;
using schedule::Stage;

// Returns the iterators whose extent must be kept as written: those that are bound to threads, or
// split or fused into such. If matrix units compute the stage, the iterators of the reduction are
// kept as well, because the units have only whole tiles.
std::vector<bool> KeptExtents(const Stage& stage) {
  std::vector<bool> kept(stage.iters.size(), false);
  if (stage.hints[ir::Hint::kMatrixUnit] != 0) {
    for (size_t i = 0; i < kept.size(); ++i)
      kept[i] = stage.iters[i].kind == schedule::IterKind::kReduce;
  }
  bool any = false;
  for (const auto& loop : stage.loops) {
    if (IsBound(loop.annotation)) any = kept[loop.iter] = true;
  }
  if (!any) return kept;
  for (size_t r = stage.relations.size(); r-- > 0;) {
    const Relation& relation = stage.relations[r];
    const bool child_kept = std::any_of(relation.children.begin(), relation.children.end(),
                                        [&](int c) { return kept[c]; });
    if (child_kept && relation.kind == Relation::kFuse) {
      for (int p : relation.parents) kept[p] = true;
    }
  }
  return kept;
}

}  // namespace

std::vector<int64_t> IterExtents(const Stage& stage, std::span<const int64_t> axis_extents) {
  std::vector<int64_t> extents(stage.iters.size(), 1);
  std::copy(axis_extents.begin(), axis_extents.end(), extents.begin());
  const std::vector<bool> kept = KeptExtents(stage);
  for (const Relation& relation : stage.relations) {
    if (relation.kind == Relation::kFuse) {
      // bounds.h refuses products that do not fit.
      int64_t product = 1;
      for (int p : relation.parents) product = MultiplyCounts(product, extents[p]);
      extents[relation.children[0]] = product;
      continue;
    }
    int64_t rest = extents[relation.parents[0]];
    const int n = static_cast<int>(relation.lengths.size());
    const auto take = [&](int child, int64_t length) {
      extents[child] = kept[child] ? length : std::min(length, rest);
      rest = CeilDiv(rest, extents[child]);
    };
    if (relation.inner_to_outer) {
      for (int i = n; i > 0; --i) take(relation.children[i], relation.lengths[i - 1]);
      extents[relation.children[0]] = rest;
    } else {
      for (int i = 0; i < n; ++i) take(relation.children[i], relation.lengths[i]);
      extents[relation.children[n]] = rest;
    }
  }
  return extents;
}

std::vector<arith::Linear> IterValues(const Stage& stage, std::span<const int64_t> iter_extents,
                                      std::span<const arith::Linear> loop_values,
                                      arith::Simplifier& simplifier, bool inside) {
  std::vector<arith::Linear> values(stage.iters.size());
  for (size_t i = 0; i < stage.loops.size(); ++i) values[stage.loops[i].iter] = loop_values[i];
  for (size_t r = stage.relations.size(); r-- > 0;) {
    const Relation& relation = stage.relations[r];
    if (relation.kind == Relation::kSplit) {
      arith::Linear sum;
      int64_t stride = 1;
      for (size_t c = relation.children.size(); c-- > 0;) {
        const arith::Linear& part = values[relation.children[c]];
        // A loop that runs once adds nothing.
        if (part.constant != 0 || !part.is_constant() || part.overflow)
          sum = arith::MultiplyAdd(sum, part, stride);
        stride *= iter_extents[relation.children[c]];
      }
      values[relation.parents[0]] = std::move(sum);
      continue;
    }
    if (relation.parents.empty()) continue;
    const arith::Linear& fused = values[relation.children[0]];
    int64_t inner = 1;
    for (size_t p = relation.parents.size(); p-- > 0;) {
      const int32_t parent = relation.parents[p];
      if (iter_extents[parent] == 1) continue;
      arith::Linear quotient = simplifier.FloorDiv(fused, inner);
      // The outermost part needs no remainder: an overrun of the fused loop is guarded.
      values[parent] = p == 0 && !inside ? std::move(quotient)
                                         : simplifier.FloorMod(quotient, iter_extents[parent]);
      inner *= iter_extents[parent];
    }
  }
  return values;
}

std::vector<SplitGuard> SplitGuards(const Stage& stage, std::span<const int64_t> iter_extents) {
  std::vector<SplitGuard> guards;
  for (const Relation& relation : stage.relations) {
    if (relation.kind != Relation::kSplit) continue;
    int64_t product = 1;
    for (int c : relation.children) product *= iter_extents[c];
    const int32_t parent = relation.parents[0];
    if (product != iter_extents[parent]) guards.push_back({parent, iter_extents[parent]});
  }
  return guards;
}

}  // namespace kiln::lower
