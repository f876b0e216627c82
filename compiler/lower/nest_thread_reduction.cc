#include <string>
#include <utility>

#include "compiler/lower/bounds.h"
#include "compiler/lower/launch.h"
#include "compiler/lower/nest_builder.h"

namespace kiln::lower {

using schedule::IterKind;

int NestBuilder::ThreadLoop(const StageFrame& frame) {
  const auto refuse = [&](std::string_view reason) {
    Refuse(frame, reason);
    return -1;
  };
  int bound = -1;
  for (int l = frame.first_reduce; l < frame.num_loops(); ++l) {
    if (frame.stage.loop(l).kind == IterKind::kSpatial && frame.bounds.loop_vars[l] >= 0)
      return refuse("spatial loops inside a reduction over threads cannot be lowered");
    if (!IsThread(frame.stage.annotation(l))) continue;
    if (bound >= 0) return refuse("more than one reduction loop is bound to threads");
    bound = l;
  }
  if (frame.bounds.loop_vars[bound] >= 0 && !IsOwn(frame, bound))
    return refuse("a reduction over threads stands inside a loop bound to them");
  return bound;
}

ir::Stmt NestBuilder::EmitThreadReduction(const StageFrame& frame) {
  const int bound = ThreadLoop(frame);
  if (bound < 0) return ir::MakeSeq(pool_, {});
  const int32_t thread = frame.bounds.loop_vars[bound];
  const int64_t threads = thread < 0 ? 1 : frame.ExtentOf(bound);
  const ir::Expr thread_id = thread < 0 ? pool_.Int(0) : pool_.Var(thread);
  const dag::Operator& op = *frame.stage.op;

  // Other threads reduce other rows, so each row has a tree.
  std::vector<int64_t> shape;
  std::vector<ir::Expr> mine;
  for (int l = 0; l < frame.first_reduce; ++l) {
    if (!IsThread(frame.stage.annotation(l)) || frame.bounds.loop_vars[l] < 0) continue;
    shape.push_back(frame.ExtentOf(l));
    mine.push_back(pool_.Var(frame.bounds.loop_vars[l]));
  }
  shape.push_back(threads);
  mine.push_back(thread_id);

  std::vector<int32_t> partial, tree;
  for (int k = 0; k < op.num_outputs(); ++k) {
    partial.push_back(
        tables_.NewBuffer(op.name() + ".partial", op.type(k), {1}, ir::Scope::kLocal));
    tree.push_back(tables_.NewBuffer(op.name() + ".tree", op.type(k), shape, ir::Scope::kShared));
  }
  const ir::Expr zero[] = {pool_.Int(0)};
  std::vector<ir::Stmt> body;
  for (int k = 0; k < op.num_outputs(); ++k) {
    body.push_back(ir::MakeStore(pool_, partial[k], frame.s, zero,
                                 dag::ReduceIdentity(op.reduction(), k, op.type(k), pool_)));
  }
  body.push_back(EmitPartial(frame, partial, bound));
  if (attachments_.RunsRepeatedly(frame.s, frame.first_reduce - 1))
    body.push_back(ir::MakeBarrier(pool_));
  for (int k = 0; k < op.num_outputs(); ++k) {
    body.push_back(
        ir::MakeStore(pool_, tree[k], frame.s, mine, pool_.Load(partial[k], zero, op.type(k))));
  }
  body.push_back(ir::MakeBarrier(pool_));
  for (int64_t left = threads; left > 1; left = (left + 1) / 2) {
    body.push_back(EmitTreeLevel(frame, tree, mine, left));
    body.push_back(ir::MakeBarrier(pool_));
  }
  body.push_back(EmitResult(frame, tree, mine));

  ir::Stmt result = ir::MakeSeq(pool_, body);
  for (size_t k = 0; k < tree.size(); ++k) {
    result = ir::MakeAlloc(pool_, partial[k], result);
    result = ir::MakeAlloc(pool_, tree[k], result);
  }
  return WrapLoop(frame, bound, result);
}

ir::Stmt NestBuilder::EmitPartial(const StageFrame& frame, const std::vector<int32_t>& partial,
                                  int bound) {
  const ir::Expr zero[] = {pool_.Int(0)};
  ir::Stmt body = Accumulate(frame, partial, zero, Bodies(frame));
  for (ir::Expr guard : frame.bounds.guards) body = ir::MakeIf(pool_, guard, body);
  for (int l = frame.num_loops(); l-- > frame.first_reduce;) {
    if (l == bound) continue;
    body = EmitAttachedGroup(attachments_.At(frame.s, l), /*repeated=*/true, body);
    const int32_t var = frame.bounds.loop_vars[l];
    if (var < 0) continue;
    body = ir::MakeFor(pool_, var, frame.ExtentOf(l), KindOf(frame.stage.annotation(l)), body);
  }
  return body;
}

ir::Stmt NestBuilder::EmitTreeLevel(const StageFrame& frame, const std::vector<int32_t>& tree,
                                    std::span<const ir::Expr> mine, int64_t left) {
  const int64_t half = (left + 1) / 2;
  const ir::Expr thread = mine.back();
  std::vector<ir::Expr> partner(mine.begin(), mine.end());
  partner.back() = pool_.Add(thread, pool_.Int(half));
  std::vector<ir::Expr> others;
  for (size_t k = 0; k < tree.size(); ++k)
    others.push_back(pool_.Load(tree[k], partner, frame.stage.op->type(static_cast<int>(k))));
  return ir::MakeIf(pool_, pool_.Lt(thread, pool_.Int(left - half)),
                    Accumulate(frame, tree, mine, others));
}

ir::Stmt NestBuilder::Accumulate(const StageFrame& frame, const std::vector<int32_t>& slots,
                                 std::span<const ir::Expr> indices,
                                 const std::vector<ir::Expr>& values) {
  const dag::Operator& op = *frame.stage.op;
  std::vector<ir::Expr> accumulators;
  for (size_t k = 0; k < slots.size(); ++k)
    accumulators.push_back(pool_.Load(slots[k], indices, op.type(static_cast<int>(k))));
  const std::vector<ir::Expr> sums = dag::Combine(op.reduction(), accumulators, values, pool_);
  return StoreAtOnce(frame, slots, indices, sums);
}

ir::Stmt NestBuilder::EmitResult(const StageFrame& frame, const std::vector<int32_t>& tree,
                                 std::span<const ir::Expr> mine) {
  const ir::Expr thread = mine.back();
  std::vector<ir::Expr> front(mine.begin(), mine.end());
  front.back() = pool_.Int(0);
  std::vector<ir::Expr> results;
  for (size_t k = 0; k < tree.size(); ++k)
    results.push_back(pool_.Load(tree[k], front, frame.stage.op->type(static_cast<int>(k))));
  ir::Stmt store = StoreAll(frame, StoreIndices(frame, frame.bounds.iter_values), results);
  for (ir::Expr guard : Guards(frame.stage, frame.bounds, frame.bounds.iter_values,
                               /*reductions=*/false, bounds_.simplifier)) {
    store = ir::MakeIf(pool_, guard, store);
  }
  return ir::MakeIf(pool_, pool_.Eq(thread, pool_.Int(0)), store);
}

}  // namespace kiln::lower
