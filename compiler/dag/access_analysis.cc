#include "compiler/dag/access_analysis.h"

#include <algorithm>

#include "compiler/ir/traverse.h"

namespace kiln::dag {
namespace {

// The way in which one access uses the spatial axes of its operator.
struct AccessShape {
  bool simple = true;
  bool axis_missing = false, axis_duplicated = false, same_order = true;
};

AccessShape ShapeOf(ir::Expr load, int num_spatial) {
  AccessShape shape;
  std::vector<int> uses(num_spatial, 0);
  int previous = -1;
  for (ir::Expr index : load->args()) {
    if (index->is_const_int()) continue;
    const int axis = ConstShiftedAxis(index);
    if (axis < 0 || axis >= num_spatial) {
      shape.simple = false;
      return shape;
    }
    if (axis < previous) shape.same_order = false;
    previous = axis;
    ++uses[axis];
  }
  shape.axis_missing = std::any_of(uses.begin(), uses.end(), [](int n) { return n == 0; });
  shape.axis_duplicated = std::any_of(uses.begin(), uses.end(), [](int n) { return n > 1; });
  return shape;
}

}  // namespace

int ConstShiftedAxis(ir::Expr e) {
  if (e->op == ir::Op::kVar) return e->id;
  if (e->op == ir::Op::kAdd || e->op == ir::Op::kSub) {
    if (e->arg(0)->op == ir::Op::kVar && e->arg(1)->is_const_int()) return e->arg(0)->id;
    if (e->op == ir::Op::kAdd && e->arg(1)->op == ir::Op::kVar && e->arg(0)->is_const_int())
      return e->arg(1)->id;
  }
  return -1;
}

AccessAnalysis::OpFacts AccessAnalysis::FactsOf(int i) const {
  const Operator& op = dag_.op(i);
  OpFacts facts;
  if (op.is_placeholder()) return facts;
  const int num_spatial = static_cast<int>(op.axes().size());
  bool inlineable = true;
  for (const Access& access : op.properties().reads) {
    const AccessShape shape = ShapeOf(access.load, num_spatial);
    facts.simple = facts.simple && shape.simple;
    inlineable = inlineable && shape.simple && shape.same_order && !shape.axis_duplicated;
  }
  const bool constant = op.properties().reads.empty();
  facts.strictly_inlineable =
      constant || (inlineable && !op.properties().has_branch && !op.properties().has_expensive);
  return facts;
}

bool AccessAnalysis::needs_multi_level_tiling(int i) const {
  const Operator& op = dag_.op(i);
  if (op.is_placeholder() || !op.attrs().simplify_const_tensor_indices.empty()) return false;
  const bool counts_all = op.num_outputs() == 1 || op.is_reduction();
  // For each counted producer that is read without some spatial axis: the axes that do occur.
  std::vector<std::vector<bool>> missing;
  for (int producer : dag_.producers(i)) {
    std::vector<bool> used = AxesReadBy(i, producer);
    bool misses = false;
    for (size_t axis = 0; axis < used.size(); ++axis)
      misses = misses || (!used[axis] && op.axes()[axis].extent > 1);
    const bool is_new = std::ranges::find(missing, used) == missing.end() &&
                        std::ranges::find(used, true) != used.end();
    if (misses && (counts_all || is_new)) missing.push_back(std::move(used));
  }
  return missing.size() >= (op.is_reduction() ? 1u : 2u);
}

std::vector<bool> AccessAnalysis::AxesReadBy(int i, int producer) const {
  const Operator& op = dag_.op(i);
  const int num_spatial = static_cast<int>(op.axes().size());
  std::vector<bool> used(num_spatial, false);
  for (const Access& access : op.properties().reads) {
    if (dag_.node(i).inputs[access.slot].op != producer) continue;
    for (ir::Expr index : access.load->args()) {
      ir::Visit(index, [&](ir::Expr e) {
        if (e->op == ir::Op::kVar && e->id < num_spatial) used[e->id] = true;
      });
    }
  }
  return used;
}

bool AccessAnalysis::reduces_columns(int i) const {
  const Operator& op = dag_.op(i);
  return op.is_reduction() && !needs_multi_level_tiling(i) && ReadsColumns(i);
}

bool AccessAnalysis::ReadsColumns(int i) const {
  const Operator& op = dag_.op(i);
  const auto spatial = static_cast<int32_t>(op.axes().size());
  const auto uses = [](ir::Expr index, const auto& wanted) {
    bool found = false;
    ir::Visit(index,
              [&](ir::Expr e) { found = found || (e->op == ir::Op::kVar && wanted(e->id)); });
    return found;
  };
  const auto is_term = [&](int32_t var) { return var >= spatial; };
  const auto is_result = [&](int32_t var) { return var < spatial && op.axes()[var].extent > 1; };
  return std::ranges::any_of(op.properties().reads, [&](const Access& access) {
    // A read without a reduce axis is the same for all terms and says nothing about the order.
    const std::span<const ir::Expr> indices = access.load->args();
    return std::ranges::any_of(indices, [&](ir::Expr index) { return uses(index, is_term); }) &&
           uses(indices.back(), is_result);
  });
}

int AccessAnalysis::CommonLeading(int producer, int i) const {
  const Operator& op = dag_.op(i);
  const std::vector<int64_t> shape = op.shape(), produced = dag_.op(producer).shape();
  int common = 0;
  for (; common < static_cast<int>(std::min(shape.size(), produced.size())); ++common) {
    if (shape[common] != produced[common]) return common;
    for (const Access& access : op.properties().reads) {
      if (dag_.node(i).inputs[access.slot].op != producer) continue;
      if (ConstShiftedAxis(access.load->arg(common)) != common) return common;
    }
  }
  return common;
}

int AccessAnalysis::num_common_outer_iterators(int a, int b) const {
  const int producer = std::min(a, b), reader = std::max(a, b);
  // The smallest count along any path, found in topological order. -1: not reached yet.
  std::vector<int> best(static_cast<size_t>(reader - producer) + 1, -1);
  best[0] = static_cast<int>(dag_.op(producer).shape().size());
  for (int i = producer + 1; i <= reader; ++i) {
    int& at = best[i - producer];
    for (int p : dag_.producers(i)) {
      if (p < producer || best[p - producer] < 0) continue;
      const int through = std::min(best[p - producer], CommonLeading(p, i));
      at = at < 0 ? through : std::min(at, through);
    }
  }
  return a == b ? 0 : std::max(0, best.back());
}

bool AccessAnalysis::ReadsElementwise(int reader, int producer) const {
  const Operator& op = dag_.op(reader);
  if (op.shape() != dag_.op(producer).shape()) return false;
  for (const Access& access : op.properties().reads) {
    if (dag_.node(reader).inputs[access.slot].op != producer) continue;
    const AccessShape shape = ShapeOf(access.load, static_cast<int>(op.axes().size()));
    if (!shape.simple || shape.axis_missing || shape.axis_duplicated || !shape.same_order)
      return false;
  }
  return true;
}

bool AccessAnalysis::elementwise_match(int op, int target) const {
  for (int current = op; current != target;) {
    const std::vector<int>& readers = dag_.consumers(current);
    if (readers.size() != 1 || dag_.op(current).is_placeholder()) return false;
    if (!ReadsElementwise(readers[0], current)) return false;
    current = readers[0];
  }
  return true;
}

bool AccessAnalysis::elementwise_on_all_paths(int op, int target) const {
  if (op > target || dag_.op(op).is_placeholder()) return false;
  // Tells which operators from op to target, in topological order, depend on op.
  std::vector<bool> depends(static_cast<size_t>(target - op) + 1, false);
  depends[0] = true;
  for (int i = op; i < target; ++i) {
    if (!depends[static_cast<size_t>(i - op)]) continue;
    if (dag_.consumers(i).empty()) return false;
    for (const int reader : dag_.consumers(i)) {
      if (reader > target || !ReadsElementwise(reader, i)) return false;
      depends[static_cast<size_t>(reader - op)] = true;
    }
  }
  return depends.back();
}

}  // namespace kiln::dag
