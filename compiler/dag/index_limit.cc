#include "compiler/dag/index_limit.h"

#include <algorithm>

namespace kiln::dag {
namespace {

bool IsClamp(ir::Expr e) {
  return (e->op == ir::Op::kMin || e->op == ir::Op::kMax) && e->arg(1)->is_const_int();
}

// Returns the op of which `e` is an integer element, possibly converted or clamped, or -1.
int ElementOf(const OpNode& reader, ir::Expr e) {
  while (e->op == ir::Op::kCast || IsClamp(e)) e = e->arg(0);
  if (e->op != ir::Op::kLoad || !e->type.is_int()) return -1;
  return reader.inputs[static_cast<size_t>(e->id)].op;
}

void LowerLimit(int64_t limit, int64_t& of) {
  of = limit == 0 || of == 0 ? limit + of : std::min(limit, of);
}

}  // namespace

std::vector<int64_t> IndexLimits(const Dag& dag) {
  std::vector<int64_t> limits(static_cast<size_t>(dag.size()), 0);
  // Readers come first, so that their limits are known.
  for (int i = dag.size() - 1; i >= 0; --i) {
    const OpNode& reader = dag.node(i);
    if (reader.op->is_placeholder()) continue;
    for (const Access& access : reader.op->properties().reads) {
      for (int d = 0; d < access.load->num_args; ++d) {
        const int op = ElementOf(reader, access.load->arg(d));
        if (op >= 0)
          LowerLimit(reader.op->input_shape(access.slot)[static_cast<size_t>(d)], limits[op]);
      }
    }
    if (reader.op->is_reduction()) continue;
    for (ir::Expr body : reader.op->bodies()) {
      const int copied = ElementOf(reader, body);
      if (copied >= 0) LowerLimit(limits[i], limits[copied]);
    }
  }
  return limits;
}

}  // namespace kiln::dag
