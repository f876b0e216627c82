#include "compiler/dag/least_operations.h"

#include <algorithm>
#include <set>
#include <vector>

namespace kiln::dag {
namespace {

int64_t ExtentOf(const Operator& op, int32_t axis) {
  const auto spatial = static_cast<int32_t>(op.axes().size());
  return axis < spatial ? op.axes()[axis].extent : op.reduce_axes()[axis - spatial].extent;
}

// Returns whether the read takes every element of a tensor of this shape.
bool ReadsAll(const Operator& reader, ir::Expr load, const std::vector<int64_t>& shape) {
  std::set<int32_t> used;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    const ir::Expr index = load->arg(static_cast<int>(d));
    if (index->op != ir::Op::kVar || !used.insert(index->id).second) return false;
    if (ExtentOf(reader, index->id) != shape[d]) return false;
  }
  return true;
}

}  // namespace

double LeastOperations(const Dag& dag) {
  double operations = 0;
  std::vector<bool> is_needed(static_cast<size_t>(dag.size()), false);
  for (int i = dag.size() - 1; i >= 0; --i) {
    const Operator& op = dag.op(i);
    if (op.is_placeholder()) continue;
    if (!is_needed[i] && !dag.is_output(i)) continue;
    operations +=
        static_cast<double>(op.num_elements()) * std::max(0.0, op.properties().flops_per_element);
    if (op.properties().has_branch) continue;
    for (const Access& access : op.properties().reads) {
      const Tensor from = dag.node(i).inputs[access.slot];
      if (ReadsAll(op, access.load, dag.shape(from))) is_needed[from.op] = true;
    }
  }
  return operations;
}

}  // namespace kiln::dag
