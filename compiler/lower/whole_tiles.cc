#include "compiler/lower/whole_tiles.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace kiln::lower {
namespace {

using ir::Expr;
using ir::Stmt;
using ir::StmtKind;

class Copier {
 public:
  Copier(ir::Program& program, const std::function<int32_t(int32_t)>& copy_var)
      : program_(program), pool_(*program.pool), copy_var_(copy_var) {}

  Stmt Copy(Stmt s) {
    switch (s->kind) {
      case StmtKind::kStore: {
        std::vector<Expr> indices;
        for (Expr index : s->indices()) indices.push_back(Copy(index));
        return ir::MakeStore(pool_, SlotFor(s->slot), s->stage, indices, Copy(s->value()),
                             s->is_async);
      }
      case StmtKind::kIf: {
        const Expr condition = Copy(s->condition());
        return ir::MakeIf(pool_, condition, Copy(s->body()));
      }
      case StmtKind::kFor: {
        const int32_t var = vars_[s->var] = copy_var_(s->var);
        return ir::MakeFor(pool_, var, s->extent, s->loop_kind, Copy(s->body()));
      }
      case StmtKind::kSeq: {
        std::vector<Stmt> children;
        for (Stmt child : s->children()) children.push_back(Copy(child));
        return ir::MakeSeq(pool_, children);
      }
      case StmtKind::kAlloc: {
        const int32_t slot = slots_[s->slot] = CopyBuffer(s->slot);
        return ir::MakeAlloc(pool_, slot, Copy(s->body()));
      }
      case StmtKind::kBarrier:
      case StmtKind::kCommit:
        return s;
    }
    return s;
  }

 private:
  Expr Copy(Expr e) {
    if (e->op == ir::Op::kVar) {
      const auto found = vars_.find(e->id);
      return found == vars_.end() ? e : pool_.Var(found->second);
    }
    if (e->num_args == 0 && e->op != ir::Op::kLoad) return e;
    absl::InlinedVector<Expr, 6> args;
    for (Expr a : e->args()) args.push_back(Copy(a));
    if (e->op == ir::Op::kLoad) return pool_.Load(SlotFor(e->id), args, e->type);
    return std::ranges::equal(args, e->args()) ? e : pool_.WithArgs(e, args);
  }

  int32_t SlotFor(int32_t slot) const {
    const auto found = slots_.find(slot);
    return found == slots_.end() ? slot : found->second;
  }

  int32_t CopyBuffer(int32_t slot) {
    ir::Buffer copy = program_.buffers[static_cast<size_t>(slot)];
    const std::string name = copy.name + "_end";
    const auto taken = [&] {
      return std::ranges::any_of(program_.buffers,
                                 [&](const ir::Buffer& b) { return b.name == copy.name; });
    };
    copy.name = name;
    for (int i = 1; taken(); ++i) copy.name = name + "_" + std::to_string(i);
    program_.buffers.push_back(std::move(copy));
    return static_cast<int32_t>(program_.buffers.size()) - 1;
  }

  ir::Program& program_;
  ir::ExprPool& pool_;
  const std::function<int32_t(int32_t)>& copy_var_;
  std::unordered_map<int32_t, int32_t> vars_, slots_;
};

// The guard for the inner values for which it is hardest, or easiest, to hold. Null where that is
// unknown, or the same always.
Expr Extreme(Expr guard, std::span<const int32_t> inner, bool hardest, ir::Simplifier& simplifier) {
  const bool is_below = guard->op == ir::Op::kLt;
  if ((!is_below && guard->op != ir::Op::kGe) || ir::HasLoad(guard)) return nullptr;
  // difference < 0, or >= 0
  const ir::Linear difference =
      simplifier.ToLinear(guard->arg(0)) - simplifier.ToLinear(guard->arg(1));
  ir::Linear moving, standing = difference;
  for (const ir::Term& term : difference.terms) {
    if (std::ranges::none_of(inner, [&](int32_t v) { return v >= 0 && ir::UsesVar(term.atom, v); }))
      continue;
    const ir::Linear one{0, {term}};
    moving = moving + one;
    standing = standing - one;
  }
  const ir::Interval range = simplifier.RangeOf(moving);
  standing.constant += is_below == hardest ? range.hi : range.lo;
  const ir::Interval all = simplifier.RangeOf(standing);
  if (all.lo >= 0 || all.hi < 0) return nullptr;
  const int64_t limit = -standing.constant;
  standing.constant = 0;
  ir::ExprPool& pool = simplifier.pool();
  return is_below ? pool.Lt(simplifier.ToExpr(standing), pool.Int(limit))
                  : pool.Ge(simplifier.ToExpr(standing), pool.Int(limit));
}

}  // namespace

Expr HoldsForAll(Expr guard, std::span<const int32_t> inner, ir::Simplifier& simplifier) {
  return Extreme(guard, inner, true, simplifier);
}

Expr HoldsForSome(Expr guard, std::span<const int32_t> inner, ir::Simplifier& simplifier) {
  return Extreme(guard, inner, false, simplifier);
}

Stmt CopyWithOwnNames(ir::Program& program, Stmt s,
                      const std::function<int32_t(int32_t)>& copy_var) {
  return Copier(program, copy_var).Copy(s);
}

}  // namespace kiln::lower
