#include <algorithm>

#include "compiler/ir/program.h"
#include "compiler/ir/substitution.h"

namespace kiln::ir {
namespace {

bool SameBuffer(const Buffer& a, const Buffer& b) {
  return a.name == b.name && a.type == b.type && a.shape == b.shape && a.scope == b.scope &&
         a.index_limit == b.index_limit && a.packing == b.packing;
}

class Comparison {
 public:
  Comparison(const Program& a, const Program& b) : a_(a), b_(b) {}

  bool Run() {
    const int num_args = a_.num_args();
    if (num_args != b_.num_args() || a_.stages.size() != b_.stages.size() ||
        a_.kernels.size() != b_.kernels.size()) {
      return false;
    }
    for (int i = 0; i < num_args; ++i) {
      if (!SameBuffer(a_.buffers[i], b_.buffers[i])) return false;
      names_.SetSlot(i, i);
    }
    for (size_t i = 0; i < a_.stages.size(); ++i) {
      const ProgramStage &x = a_.stages[i], &y = b_.stages[i];
      if (x.name != y.name || x.hints != y.hints) return false;
    }
    for (size_t i = 0; i < a_.kernels.size(); ++i) {
      const Kernel &x = a_.kernels[i], &y = b_.kernels[i];
      if (x.name != y.name || x.grid != y.grid || x.block != y.block || x.cluster != y.cluster ||
          x.hints != y.hints || !Same(x.body, y.body))
        return false;
    }
    return true;
  }

 private:
  bool Same(Stmt a, Stmt b) {
    if (a->kind != b->kind || a->loop_kind != b->loop_kind || a->stage != b->stage ||
        a->extent != b->extent || a->is_async != b->is_async || a->pending != b->pending ||
        a->is_of_cluster != b->is_of_cluster || a->is_of_warp != b->is_of_warp ||
        a->num_exprs != b->num_exprs || a->num_children != b->num_children) {
      return false;
    }
    if (a->kind == StmtKind::kFor) {
      if (a_.vars[a->var].name != b_.vars[b->var].name) return false;
      names_.SetVar(a->var, pool_.Var(b->var));
    }
    if (a->kind == StmtKind::kAlloc) {
      if (!SameBuffer(a_.buffers[a->slot], b_.buffers[b->slot])) return false;
      names_.SetSlot(a->slot, b->slot);
    }
    if (a->kind == StmtKind::kStore && names_.SlotFor(a->slot) != b->slot) return false;
    if (a->kind == StmtKind::kInstruction &&
        a_.instructions[a->instruction] != b_.instructions[b->instruction])
      return false;
    for (uint32_t i = 0; i < a->num_exprs; ++i) {
      if (pool_.Substitute(a->exprs()[i], names_) != pool_.Import(b->exprs()[i])) return false;
    }
    for (uint32_t i = 0; i < a->num_children; ++i) {
      if (!Same(a->children()[i], b->children()[i])) return false;
    }
    return true;
  }

  const Program &a_, &b_;
  ExprPool pool_;
  // Maps the variables and buffers of a to those of b.
  Substitution names_;
};

}  // namespace

bool Equal(const Program& a, const Program& b) { return Comparison(a, b).Run(); }

}  // namespace kiln::ir
