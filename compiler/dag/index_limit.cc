#include "compiler/dag/index_limit.h"

#include <algorithm>

namespace kiln::dag {
namespace {

bool IsClamp(ir::Expr e) {
  return (e->op == ir::Op::kMin || e->op == ir::Op::kMax) && e->arg(1)->is_const_int();
}

// Is `e` an integer element of op, as it is, converted or clamped?
bool IsElementOf(const OpNode& reader, int op, ir::Expr e) {
  while (e->op == ir::Op::kCast || IsClamp(e)) e = e->arg(0);
  return e->op == ir::Op::kLoad && e->type.is_int() &&
         reader.inputs[static_cast<size_t>(e->id)].op == op;
}

int64_t Tighter(int64_t a, int64_t b) { return a == 0 || b == 0 ? a + b : std::min(a, b); }

}  // namespace

int64_t IndexLimit(const Dag& dag, int op) {
  int64_t limit = 0;
  for (int i : dag.consumers(op)) {
    const OpNode& reader = dag.node(i);
    for (const Access& access : reader.op->facts().reads) {
      for (int d = 0; d < access.load->num_args; ++d) {
        if (!IsElementOf(reader, op, access.load->arg(d))) continue;
        limit = Tighter(limit, reader.op->input_shape(access.slot)[static_cast<size_t>(d)]);
      }
    }
    const bool copies = !reader.op->is_reduction() && IsElementOf(reader, op, reader.op->body());
    if (copies) limit = Tighter(limit, IndexLimit(dag, i));
  }
  return limit;
}

}  // namespace kiln::dag
