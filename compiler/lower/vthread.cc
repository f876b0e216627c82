#include "compiler/lower/vthread.h"

#include <algorithm>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace kiln::lower {
namespace {

using ir::Expr;
using ir::LoopKind;
using ir::Program;
using ir::Stmt;
using ir::StmtKind;
using Children = absl::InlinedVector<Stmt, 4>;

// Rewrites the body of one vthread loop.
class Injector {
 public:
  Injector(Program& program, Stmt loop)
      : program_(program),
        pool_(*program.pool),
        var_(loop->var),
        extent_(loop->extent),
        split_(program.buffers.size()) {
    // Which buffers depend on the virtual thread: to a fixed point, for one may be computed from
    // another.
    while (FindSplitBuffers(loop->body(), false)) {
    }
    for (size_t b = 0; b < split_.size(); ++b) {
      if (!split_[b]) continue;
      any_split_ = true;
      program_.buffers[b].shape.insert(program_.buffers[b].shape.begin(), extent_);
    }
  }

  Stmt Rewrite(Stmt s) {
    switch (s->kind) {
      case StmtKind::kStore: {
        const Stmt store = RewriteStore(s);
        return Depends(s) ? Copies(store) : store;
      }
      case StmtKind::kIf:
        // A condition on the virtual thread is part of each copy.
        if (ExprDepends(s->condition()))
          return Copies(ir::MakeIf(pool_, RewriteExpr(s->condition()), RewriteAll(s->body())));
        return ir::MakeIf(pool_, RewriteExpr(s->condition()), Rewrite(s->body()));
      case StmtKind::kFor:
        return ir::MakeFor(pool_, s->var, s->extent, s->loop_kind, Rewrite(s->body()));
      case StmtKind::kSeq: {
        Children children;
        for (Stmt child : s->children()) children.push_back(Rewrite(child));
        return ir::MakeSeq(pool_, children);
      }
      case StmtKind::kAlloc:
        return ir::MakeAlloc(pool_, s->slot, Rewrite(s->body()));
      case StmtKind::kBarrier:
      case StmtKind::kCommit:
        return s;
    }
    return s;
  }

 private:
  bool IsSplittable(int32_t slot) const {
    return program_.buffers[slot].scope == ir::Scope::kLocal;
  }

  // Marks local buffers allocated inside the loop that some store makes different per virtual
  // thread. True when one was added.
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

  // Loads of split buffers get the virtual thread as their first index.
  Expr RewriteExpr(Expr e) {
    const bool split = e->op == ir::Op::kLoad && split_[e->id];
    if (!any_split_ || (e->num_args == 0 && !split)) return e;
    absl::InlinedVector<Expr, 6> args;
    if (split) args.push_back(pool_.Var(CurrentVar()));
    bool changed = split;
    for (Expr a : e->args()) {
      args.push_back(RewriteExpr(a));
      changed |= args.back() != a;
    }
    if (!changed) return e;
    if (!split) return pool_.WithArgs(e, args);
    return pool_.Load(e->id, args, e->type);
  }

  Stmt RewriteStore(Stmt s) {
    absl::InlinedVector<Expr, 6> indices;
    if (split_[s->slot]) indices.push_back(pool_.Var(CurrentVar()));
    for (Expr index : s->indices()) indices.push_back(RewriteExpr(index));
    return ir::MakeStore(pool_, s->slot, s->stage, indices, RewriteExpr(s->value()), s->is_async);
  }

  // The statement as it is inside one copy: nothing is wrapped again.
  Stmt RewriteAll(Stmt s) {
    switch (s->kind) {
      case StmtKind::kStore:
        return RewriteStore(s);
      case StmtKind::kIf:
        return ir::MakeIf(pool_, RewriteExpr(s->condition()), RewriteAll(s->body()));
      case StmtKind::kFor:
        return ir::MakeFor(pool_, s->var, s->extent, s->loop_kind, RewriteAll(s->body()));
      case StmtKind::kSeq: {
        Children children;
        for (Stmt child : s->children()) children.push_back(RewriteAll(child));
        return ir::MakeSeq(pool_, children);
      }
      case StmtKind::kAlloc:
        return ir::MakeAlloc(pool_, s->slot, RewriteAll(s->body()));
      case StmtKind::kBarrier:
      case StmtKind::kCommit:
        return s;
    }
    return s;
  }

  int32_t CurrentVar() const { return var_; }

  // One unrolled loop per wrapped statement, each with a variable of its own: a variable is bound
  // by one loop.
  Stmt Copies(Stmt body) {
    int32_t var = var_;
    if (used_) {
      var = static_cast<int32_t>(program_.vars.size());
      program_.vars.push_back({program_.vars[var_].name + "_" + std::to_string(var), extent_});
      body = Rename(body, var);
    }
    used_ = true;
    return ir::MakeFor(pool_, var, extent_, LoopKind::kUnrolled, body);
  }

  Stmt Rename(Stmt s, int32_t to) {
    ir::Substitution names;
    names.SetVar(var_, pool_.Var(to));
    return RenameIn(s, names);
  }
  Stmt RenameIn(Stmt s, const ir::Substitution& vars) {
    std::vector<Expr> exprs;
    for (Expr e : s->exprs()) exprs.push_back(pool_.Substitute(e, vars));
    switch (s->kind) {
      case StmtKind::kStore: {
        const Expr value = exprs.back();
        exprs.pop_back();
        return ir::MakeStore(pool_, s->slot, s->stage, exprs, value, s->is_async);
      }
      case StmtKind::kIf:
        return ir::MakeIf(pool_, exprs[0], RenameIn(s->body(), vars));
      case StmtKind::kFor:
        return ir::MakeFor(pool_, s->var, s->extent, s->loop_kind, RenameIn(s->body(), vars));
      case StmtKind::kSeq: {
        Children children;
        for (Stmt child : s->children()) children.push_back(RenameIn(child, vars));
        return ir::MakeSeq(pool_, children);
      }
      case StmtKind::kAlloc:
        return ir::MakeAlloc(pool_, s->slot, RenameIn(s->body(), vars));
      case StmtKind::kBarrier:
      case StmtKind::kCommit:
        return s;
    }
    return s;
  }

  Program& program_;
  ir::ExprPool& pool_;
  const int32_t var_;
  const int64_t extent_;
  bool used_ = false;  // var_ is bound by a loop already
  bool any_split_ = false;
  std::vector<bool> split_;  // buffers with one copy per virtual thread
};

Stmt InjectIn(Program& program, Stmt s) {
  Children children;
  for (Stmt child : s->children()) children.push_back(InjectIn(program, child));
  ir::ExprPool& pool = *program.pool;
  Stmt result = s;
  switch (s->kind) {
    case StmtKind::kFor:
      result = ir::MakeFor(pool, s->var, s->extent, s->loop_kind, children[0]);
      if (s->loop_kind == LoopKind::kVThread)
        return Injector(program, result).Rewrite(result->body());
      return result;
    case StmtKind::kIf:
      return ir::MakeIf(pool, s->condition(), children[0]);
    case StmtKind::kSeq:
      return ir::MakeSeq(pool, children);
    case StmtKind::kAlloc:
      return ir::MakeAlloc(pool, s->slot, children[0]);
    case StmtKind::kStore:
    case StmtKind::kBarrier:
    case StmtKind::kCommit:
      return s;
  }
  return result;
}

}  // namespace

void InjectVThreads(Program& program) {
  for (ir::Kernel& kernel : program.kernels) kernel.body = InjectIn(program, kernel.body);
}

}  // namespace kiln::lower
