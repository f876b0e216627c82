#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/ir/traverse.h"
#include "compiler/lower/body.h"
#include "compiler/lower/indexed_regions.h"
#include "compiler/lower/iteration.h"
#include "compiler/lower/launch.h"
#include "compiler/lower/nest_builder.h"

namespace kiln::lower {

using schedule::Attach;
using schedule::IterKind;
using schedule::Stage;

ir::Stmt NestBuilder::EmitStores(const StageFrame& frame) {
  const dag::Operator& op = *frame.stage.op;
  const std::vector<ir::Expr> indices = StoreIndices(frame, frame.bounds.iter_values);
  std::vector<ir::Expr> values = Bodies(frame);
  if (op.is_reduction()) {
    std::vector<ir::Expr> accumulators;
    for (int k = 0; k < op.num_outputs(); ++k) {
      accumulators.push_back(pool_.Load(tables_.SlotOf(frame.s, k), indices, op.type(k)));
    }
    values = dag::Combine(op.reduction(), accumulators, values, pool_);
  }
  if (!frame.bounds.fill_guards.empty()) values = ZeroOutside(frame, std::move(values));
  return StoreAll(frame, indices, values);
}

std::vector<ir::Expr> NestBuilder::ZeroOutside(const StageFrame& frame,
                                               std::vector<ir::Expr> values) {
  ir::Expr inside = nullptr;
  for (ir::Expr guard : frame.bounds.fill_guards)
    inside = inside == nullptr ? guard : pool_.And(inside, guard);
  for (ir::Expr& value : values) {
    const ir::Type type = value->type;
    const ir::Expr zero = type.is_float() ? pool_.Float(0, type) : pool_.Int(0, type);
    value = pool_.If(inside, value, zero);
  }
  return values;
}

ir::Stmt NestBuilder::EmitInit(const StageFrame& frame) {
  const Stage& stage = frame.stage;
  const int n = static_cast<int>(stage.loops.size());
  std::vector<arith::Linear> loop_values(n);
  std::vector<int32_t> vars = frame.bounds.loop_vars;
  for (int i = 0; i < n; ++i) {
    if (vars[i] < 0) continue;
    if (i >= frame.first_reduce) {
      if (stage.loop(i).kind != IterKind::kSpatial) continue;
      bounds_.owners.push_back({frame.s, i});
      vars[i] = bounds_.simplifier.AddVar(frame.ExtentOf(i));
    }
    loop_values[i] = bounds_.simplifier.Var(vars[i]);
  }
  const std::vector<arith::Linear> values =
      IterValues(stage, frame.bounds.iter_extents, loop_values, bounds_.simplifier);

  std::vector<ir::Expr> identities;
  for (int k = 0; k < stage.op->num_outputs(); ++k) {
    identities.push_back(dag::ReduceIdentity(stage.op->reduction(), k, stage.op->type(k), pool_));
  }
  ir::Stmt body = StoreAll(frame, StoreIndices(frame, values), identities);
  for (ir::Expr guard :
       Guards(stage, frame.bounds, values, /*reductions=*/false, bounds_.simplifier)) {
    if (frame.tile == StageFrame::kWholeTile || frame.IsOutsideReduction(guard)) continue;
    body = ir::MakeIf(pool_, guard, body);
  }
  for (int i = n; i-- > frame.first_reduce;) {
    if (vars[i] < 0 || stage.loop(i).kind != IterKind::kSpatial) continue;
    body = ir::MakeFor(pool_, vars[i], frame.ExtentOf(i), KindOf(stage.annotation(i)), body);
  }
  return body;
}

ir::Stmt NestBuilder::StoreAll(const StageFrame& frame, const std::vector<ir::Expr>& indices,
                               const std::vector<ir::Expr>& values) {
  std::vector<int32_t> slots;
  for (size_t k = 0; k < values.size(); ++k)
    slots.push_back(tables_.SlotOf(frame.s, static_cast<int>(k)));
  return StoreAtOnce(frame, slots, indices, values);
}

namespace {

bool Reads(ir::Expr value, int32_t slot) {
  bool reads = false;
  ir::Visit(value, [&](ir::Expr e) { reads |= e->op == ir::Op::kLoad && e->id == slot; });
  return reads;
}

// Returns the first of the remaining values whose buffer no other remaining value reads, or -1.
int NextToStore(const std::vector<int>& left, std::span<const int32_t> slots,
                std::span<const ir::Expr> values) {
  for (const int k : left) {
    const bool is_read = std::ranges::any_of(left, [&](int other) {
      return other != k && Reads(values[static_cast<size_t>(other)], slots[static_cast<size_t>(k)]);
    });
    if (!is_read) return k;
  }
  return -1;
}

}  // namespace

ir::Stmt NestBuilder::StoreAtOnce(const StageFrame& frame, std::span<const int32_t> slots,
                                  std::span<const ir::Expr> indices,
                                  std::span<const ir::Expr> values) {
  const auto store = [&](int k, ir::Expr value) {
    return ir::MakeStore(pool_, slots[static_cast<size_t>(k)], frame.s, indices, value);
  };
  std::vector<ir::Stmt> stores;
  std::vector<int> left(values.size());
  std::iota(left.begin(), left.end(), 0);
  for (int k; !left.empty() && (k = NextToStore(left, slots, values)) >= 0; std::erase(left, k))
    stores.push_back(store(k, values[static_cast<size_t>(k)]));
  if (left.empty()) return ir::MakeSeq(pool_, stores);

  // Each remaining value reads a buffer that another one stores to, so all are computed before any
  // is stored. Each lane of a vector has its own element.
  std::vector<int64_t> shape;
  std::vector<ir::Expr> mine;
  for (int l = 0; l < frame.num_loops(); ++l) {
    const int32_t var = frame.bounds.loop_vars[static_cast<size_t>(l)];
    if (var < 0 || KindOf(frame.stage.annotation(l)) != ir::LoopKind::kVectorized) continue;
    shape.push_back(frame.ExtentOf(l));
    mine.push_back(pool_.Var(var));
  }
  if (shape.empty()) {
    shape.push_back(1);
    mine.push_back(pool_.Int(0));
  }
  const dag::Operator& op = *frame.stage.op;
  std::vector<int32_t> next;
  for (const int k : left) {
    next.push_back(tables_.NewBuffer(op.name() + ".next", op.type(k), shape, ir::Scope::kLocal));
    next_buffers_.insert(next.back());
    stores.push_back(
        ir::MakeStore(pool_, next.back(), frame.s, mine, values[static_cast<size_t>(k)]));
  }
  for (size_t i = 0; i < left.size(); ++i)
    stores.push_back(store(left[i], pool_.Load(next[i], mine, op.type(left[i]))));
  ir::Stmt result = ir::MakeSeq(pool_, stores);
  for (const int32_t buffer : next) result = ir::MakeAlloc(pool_, buffer, result);
  return result;
}

std::vector<ir::Expr> NestBuilder::StoreIndices(const StageFrame& frame,
                                                const std::vector<arith::Linear>& iter_values) {
  const bool local = state_.attach(frame.s).kind == Attach::kIter;
  std::vector<ir::Expr> indices;
  for (size_t d = 0; d < frame.stage.op->axes().size(); ++d) {
    indices.push_back(bounds_.simplifier.ToExpr(
        local ? iter_values[d] : frame.bounds.region_min[d] + iter_values[d]));
  }
  return tables_.LaidOut(frame.s, std::move(indices));
}

std::vector<ir::Expr> NestBuilder::Bodies(const StageFrame& frame) {
  const auto read = [&](int producer, int output, const std::vector<arith::Linear>& at,
                        ir::Type type) { return EmitRead(producer, output, at, type); };
  std::vector<ir::Expr> bodies;
  for (int k = 0; k < frame.stage.op->num_outputs(); ++k) {
    bodies.push_back(
        LowerBody(state_, frame.s, k, frame.bounds.axis_values, bounds_.simplifier, read));
  }
  return bodies;
}

ir::Expr NestBuilder::EmitRead(int producer, int output, const std::vector<arith::Linear>& indices,
                               ir::Type type) {
  if (const PackedInput* packed = tables_.PackedOf(producer))
    return pool_.Load(tables_.SlotOf(producer, output), packed->indices, type);
  const bool local = state_.attach(producer).kind == Attach::kIter;
  std::vector<ir::Expr> exprs;
  exprs.reserve(indices.size());
  for (size_t d = 0; d < indices.size(); ++d) {
    exprs.push_back(
        bounds_.simplifier.ToExpr(local ? PlaceInTile(bounds_.stages[static_cast<size_t>(producer)],
                                                      d, indices[d], bounds_.simplifier)
                                        : indices[d]));
  }
  return pool_.Load(tables_.SlotOf(producer, output), tables_.LaidOut(producer, std::move(exprs)),
                    type);
}

}  // namespace kiln::lower
