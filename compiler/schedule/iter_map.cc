#include "compiler/schedule/iter_map.h"

#include <algorithm>

#include "base/numbers/integers.h"

namespace kiln::schedule {
namespace {

Status ExtentsOfSplit(const Relation& relation, std::vector<int64_t>& extents) {
  int64_t rest = extents[relation.parents[0]];
  const int pieces = static_cast<int>(relation.children.size());
  for (int i = 0; i + 1 < pieces; ++i) {
    const int64_t length = relation.lengths[i];
    if (length == 0)
      return InvalidArgument("a split has a blank length; expected a complete state");
    rest = CeilDiv(rest, length);
    extents[relation.children[relation.inner_to_outer ? i + 1 : i]] = length;
  }
  extents[relation.children[relation.inner_to_outer ? 0 : pieces - 1]] = rest;
  return OkStatus();
}

Status ExtentsOfFuse(const Relation& relation, std::vector<int64_t>& extents) {
  int64_t product = 1;
  for (int32_t parent : relation.parents) {
    const auto longer = CheckedMul(product, extents[parent]);
    if (!longer) return InvalidArgument("the extent of a fused loop overflows");
    product = *longer;
  }
  extents[relation.children[0]] = product;
  return OkStatus();
}

class Mapper {
 public:
  Mapper(const Stage& stage, std::span<const int64_t> extents, ir::ExprPool& pool)
      : stage_(stage), extents_(extents), pool_(pool) {}

  IterMap Map(std::span<const ir::Expr> loop_vars) {
    values_.assign(stage_.iters.size(), nullptr);
    for (size_t i = 0; i < loop_vars.size(); ++i) values_[stage_.loops[i].iter] = loop_vars[i];
    // Goes from the loops back to the axes. The conditions are in this order too: a value is
    // computed from iterators whose conditions stand before its own.
    inside_ = pool_.Bool(true);
    for (size_t i = stage_.relations.size(); i-- > 0;) {
      const Relation& relation = stage_.relations[i];
      relation.kind == Relation::kSplit ? MapSplit(relation) : MapFuse(relation);
    }
    return {std::move(values_), inside_};
  }

 private:
  void MapSplit(const Relation& relation) {
    relation.inner_to_outer ? MapInnerToOuter(relation) : MapOuterToInner(relation);
  }

  // Mixed radix: every piece but the outermost has a fixed extent, so values are distinct, and only
  // the end can overhang.
  void MapInnerToOuter(const Relation& relation) {
    ir::Expr value = values_[relation.children[0]];
    int64_t covered = extents_[relation.children[0]];
    for (size_t i = 1; i < relation.children.size(); ++i) {
      const int64_t length = extents_[relation.children[i]];
      value = pool_.Add(pool_.Mul(value, pool_.Int(length)), values_[relation.children[i]]);
      covered *= length;
    }
    Define(relation.parents[0], value, covered);
  }

  // The lengths are numbers of parts: the parent is cut into lengths[0] parts of ceil(extent /
  // lengths[0]), and each part is cut again. A part of a part may overhang its part, so each cut
  // has a condition.
  void MapOuterToInner(const Relation& relation) {
    const size_t cuts = relation.lengths.size();
    // Extent before each cut.
    std::vector<int64_t> part(cuts + 1);
    part[0] = extents_[relation.parents[0]];
    for (size_t i = 0; i < cuts; ++i) part[i + 1] = CeilDiv(part[i], relation.lengths[i]);
    ir::Expr value = values_[relation.children[cuts]];
    for (size_t i = cuts; i-- > 0;) {
      value = pool_.Add(pool_.Mul(values_[relation.children[i]], pool_.Int(part[i + 1])), value);
      const int64_t covered = relation.lengths[i] * part[i + 1];
      if (i > 0 && covered != part[i]) Require(pool_.Lt(value, pool_.Int(part[i])));
    }
    Define(relation.parents[0], value, cuts == 0 ? part[0] : relation.lengths[0] * part[1]);
  }

  void MapFuse(const Relation& relation) {
    ir::Expr rest = values_[relation.children[0]];
    for (size_t i = relation.parents.size(); i-- > 0;) {
      const int32_t parent = relation.parents[i];
      const ir::Expr extent = pool_.Int(extents_[parent]);
      values_[parent] = i == 0 ? rest : pool_.FloorMod(rest, extent);
      rest = pool_.FloorDiv(rest, extent);
    }
  }

  // The pieces count to `covered`, but the iterator only to its extent.
  void Define(int32_t iter, ir::Expr value, int64_t covered) {
    values_[iter] = value;
    if (covered != extents_[iter]) Require(pool_.Lt(value, pool_.Int(extents_[iter])));
  }

  void Require(ir::Expr condition) { inside_ = pool_.And(inside_, condition); }

  const Stage& stage_;
  const std::span<const int64_t> extents_;
  ir::ExprPool& pool_;
  std::vector<ir::Expr> values_;
  ir::Expr inside_ = nullptr;
};

}  // namespace

StatusOr<std::vector<int64_t>> IterExtents(const Stage& stage,
                                           std::span<const int64_t> axis_extents) {
  KILN_CHECK(static_cast<int>(axis_extents.size()) == stage.num_axes());
  std::vector<int64_t> extents(stage.iters.size(), 1);
  std::copy(axis_extents.begin(), axis_extents.end(), extents.begin());
  for (const Relation& relation : stage.relations) {
    KILN_RETURN_IF_ERROR(relation.kind == Relation::kSplit ? ExtentsOfSplit(relation, extents)
                                                           : ExtentsOfFuse(relation, extents));
  }
  return extents;
}

StatusOr<std::vector<int64_t>> IterExtents(const Stage& stage) {
  std::vector<int64_t> axis_extents;
  for (const dag::Axis& axis : stage.op->axes()) axis_extents.push_back(axis.extent);
  for (const dag::Axis& axis : stage.op->reduce_axes()) axis_extents.push_back(axis.extent);
  return IterExtents(stage, axis_extents);
}

IterMap MapIters(const Stage& stage, std::span<const ir::Expr> loop_vars,
                 std::span<const int64_t> extents, ir::ExprPool& pool) {
  KILN_CHECK(loop_vars.size() == stage.loops.size() && extents.size() == stage.iters.size());
  return Mapper(stage, extents, pool).Map(loop_vars);
}

}  // namespace kiln::schedule
