#include "compiler/dag/access_analysis.h"

#include <algorithm>

namespace kiln::dag {
namespace {

// What one access does with the spatial axes of its operator.
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

AccessAnalysis::AccessAnalysis(const Dag& dag) : dag_(dag), facts_(dag.size()) {
  for (int op = 0; op < dag.size(); ++op) AnalyzeOp(op);
  AnalyzeCommonIterators();
}

void AccessAnalysis::AnalyzeOp(int i) {
  const Operator& op = dag_.op(i);
  OpFacts& facts = facts_[i];
  if (op.is_placeholder()) return;
  const int num_spatial = static_cast<int>(op.axes().size());

  bool inlineable = true;
  for (const Access& access : op.facts().reads) {
    const AccessShape shape = ShapeOf(access.load, num_spatial);
    facts.simple = facts.simple && shape.simple;
    inlineable = inlineable && shape.simple && shape.same_order && !shape.axis_duplicated;
  }
  const bool constant = op.facts().reads.empty();
  facts.strictly_inlineable =
      constant || (inlineable && !op.facts().has_branch && !op.facts().has_expensive);

  if (!op.attrs().simplify_const_tensor_indices.empty()) return;
  int missing_producers = 0;
  for (int producer : dag_.producers(i)) {
    std::vector<bool> used(num_spatial, false);
    for (const Access& access : op.facts().reads) {
      if (dag_.node(i).inputs[access.slot].op != producer) continue;
      for (ir::Expr index : access.load->args()) {
        ir::Visit(index, [&](ir::Expr e) {
          if (e->op == ir::Op::kVar && e->id < num_spatial) used[e->id] = true;
        });
      }
    }
    bool missing = false;
    for (int axis = 0; axis < num_spatial; ++axis)
      missing = missing || (!used[axis] && op.axes()[axis].extent > 1);
    if (missing) ++missing_producers;
  }
  facts.multi_level_tiling =
      missing_producers >= 2 || (missing_producers >= 1 && op.is_reduction());
}

int AccessAnalysis::CommonLeading(int producer, int i) const {
  const Operator& op = dag_.op(i);
  const std::vector<int64_t> shape = op.shape(), produced = dag_.op(producer).shape();
  int common = 0;
  for (; common < static_cast<int>(std::min(shape.size(), produced.size())); ++common) {
    if (shape[common] != produced[common]) return common;
    for (const Access& access : op.facts().reads) {
      if (dag_.node(i).inputs[access.slot].op != producer) continue;
      if (ConstShiftedAxis(access.load->arg(common)) != common) return common;
    }
  }
  return common;
}

void AccessAnalysis::AnalyzeCommonIterators() {
  const int n = dag_.size();
  common_.assign(n, std::vector<int>(n, 0));
  for (int producer = 0; producer < n; ++producer) {
    // The smallest count along any path, found in topological order; -1: not reached yet.
    std::vector<int> best(n, -1);
    best[producer] = static_cast<int>(dag_.op(producer).axes().size());
    if (dag_.op(producer).is_placeholder())
      best[producer] = static_cast<int>(dag_.op(producer).shape().size());
    for (int i = producer + 1; i < n; ++i) {
      for (int p : dag_.producers(i)) {
        if (best[p] < 0) continue;
        const int through = std::min(best[p], CommonLeading(p, i));
        best[i] = best[i] < 0 ? through : std::min(best[i], through);
      }
      if (best[i] > 0) common_[producer][i] = common_[i][producer] = best[i];
    }
  }
}

bool AccessAnalysis::ReadsElementwise(int reader, int producer) const {
  const Operator& op = dag_.op(reader);
  if (op.shape() != dag_.op(producer).shape()) return false;
  for (const Access& access : op.facts().reads) {
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

}  // namespace kiln::dag
