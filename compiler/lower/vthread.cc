#include "compiler/lower/vthread.h"

#include <algorithm>
#include <vector>

#include "compiler/ir/rewrite.h"
#include "compiler/ir/substitution.h"
#include "compiler/ir/traverse.h"

namespace kiln::lower {
namespace {

using ir::Expr;
using ir::LoopKind;
using ir::Program;
using ir::Stmt;
using ir::StmtKind;

// Rewrites the body of one vthread loop.
class Injector {
 public:
  Injector(Program& program, Stmt loop)
      : program_(program),
        pool_(*program.pool),
        var_(loop->var),
        extent_(loop->extent),
        split_(program.buffers.size()) {
    // Finds the buffers that depend on the virtual thread. Repeats until nothing changes, because a
    // buffer may be computed from another one.
    while (FindSplitBuffers(loop->body(), false)) {
    }
    for (size_t b = 0; b < split_.size(); ++b) {
      if (!split_[b]) continue;
      split_slots_.push_back(static_cast<int32_t>(b));
      program_.buffers[b].shape.insert(program_.buffers[b].shape.begin(), extent_);
    }
  }

  // Puts a loop over the virtual thread around each statement that depends on it. For a condition
  // the loop is around its whole body.
  Stmt Rewrite(Stmt s) {
    const bool depends = (s->kind == StmtKind::kStore && Depends(s)) ||
                         (s->kind == StmtKind::kIf && ExprDepends(s->condition()));
    if (depends) return Copies(s);
    return ir::RewriteChildren(pool_, s, [&](Stmt child) { return Rewrite(child); });
  }

 private:
  bool IsSplittable(int32_t slot) const {
    return program_.buffers[slot].scope == ir::Scope::kLocal;
  }

  // Marks local buffers allocated inside the loop to which some store writes different values per
  // virtual thread. Returns true if a buffer was added.
  bool FindSplitBuffers(Stmt s, bool under_dependent) {
    bool added = false;
    if (s->kind == StmtKind::kStore && IsSplittable(s->slot) && !split_[s->slot] &&
        (under_dependent || Depends(s))) {
      split_[s->slot] = added = true;
    }
    const bool dependent =
        under_dependent || (s->kind == StmtKind::kIf && ExprDepends(s->condition()));
    for (Stmt child : s->children()) added = FindSplitBuffers(child, dependent) || added;
    return added;
  }

  bool ExprDepends(Expr e) const {
    bool depends = false;
    ir::Visit(e, [&](Expr n) {
      if (n->op == ir::Op::kVar && n->id == var_) depends = true;
      if (n->op == ir::Op::kLoad && split_[n->id]) depends = true;
    });
    return depends;
  }

  bool Depends(Stmt store) const {
    if (split_[store->slot]) return true;
    return std::any_of(store->exprs().begin(), store->exprs().end(),
                       [&](Expr e) { return ExprDepends(e); });
  }

  // Makes one unrolled loop per wrapped statement. Each has its own variable, because only one loop
  // may bind a variable. Accesses of split buffers get the variable as their first index.
  Stmt Copies(Stmt body) {
    ir::Substitution names;
    int32_t var = var_;
    if (used_) {
      const auto number = program_.vars.size();
      var = ir::AddVar(program_, fmt::format("{}_{}", program_.vars[var_].name, number), extent_);
      names.SetVar(var_, pool_.Var(var));
    }
    used_ = true;
    for (int32_t slot : split_slots_) names.SetFirstIndex(slot, pool_.Var(var));
    return ir::MakeFor(pool_, var, extent_, LoopKind::kUnrolled,
                       ir::Substitute(pool_, body, names));
  }

  Program& program_;
  ir::ExprPool& pool_;
  const int32_t var_;
  const int64_t extent_;
  // A loop binds var_ already.
  bool used_ = false;
  // Buffers with one copy per virtual thread.
  std::vector<bool> split_;
  std::vector<int32_t> split_slots_;
};

Stmt InjectIn(Program& program, Stmt s) {
  const Stmt result =
      ir::RewriteChildren(*program.pool, s, [&](Stmt child) { return InjectIn(program, child); });
  const bool is_vthread = s->kind == StmtKind::kFor && s->loop_kind == LoopKind::kVThread;
  return is_vthread ? Injector(program, result).Rewrite(result->body()) : result;
}

}  // namespace

void InjectVThreads(Program& program) {
  for (ir::Kernel& kernel : program.kernels) kernel.body = InjectIn(program, kernel.body);
}

}  // namespace kiln::lower
