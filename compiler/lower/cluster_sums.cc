#include "compiler/lower/cluster_sums.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "compiler/lower/whole_tiles.h"

namespace kiln::lower {
namespace {

using ir::Expr;
using ir::LoopKind;
using ir::Program;
using ir::Stmt;
using ir::StmtKind;

constexpr int64_t kMostWords = 64;

class Splitter {
 public:
  explicit Splitter(Program& program) : program_(program), pool_(*program.pool) {}

  Stmt Rewrite(Stmt s) {
    if (s->kind == StmtKind::kFor && s->extent > 1 &&
        (s->loop_kind == LoopKind::kSerial || s->loop_kind == LoopKind::kUnrolled)) {
      if (const Stmt split = Split(s)) return split;
    }
    std::vector<Stmt> children;
    for (Stmt child : s->children()) children.push_back(Rewrite(child));
    return ir::WithChildren(pool_, s, children);
  }

 private:
  // Null: it is no such loop.
  Stmt Split(Stmt loop) {
    std::vector<Stmt> path;  // between the loop and the registers
    Stmt alloc = loop->body();
    for (; alloc->kind != StmtKind::kAlloc; alloc = alloc->body()) {
      const bool is_bound = alloc->kind == StmtKind::kFor && alloc->loop_kind >= LoopKind::kBlockX;
      const bool is_guard = alloc->kind == StmtKind::kIf && !ir::HasLoad(alloc->condition());
      if (!is_bound && !is_guard) return nullptr;
      path.push_back(alloc);
    }
    ir::Buffer& sums = program_.buffers[static_cast<size_t>(alloc->slot)];
    if (sums.scope != ir::Scope::kLocal || alloc->body()->kind != StmtKind::kSeq ||
        loop->extent * ((sums.bytes() + 3) / 4) > kMostWords)
      return nullptr;
    const auto statements = alloc->body()->children();
    size_t first = 0;
    bool adds = false;
    while (first < statements.size() && StoresOnly(statements[first], alloc->slot))
      adds |= ReadsCluster(statements[first++]);
    const std::vector<Stmt> sum(statements.begin(), statements.begin() + first);
    const std::vector<Stmt> rest(statements.begin() + first, statements.end());
    if (!adds || rest.empty()) return nullptr;
    for (Stmt s : rest) {
      if (ReadsCluster(s) || !IsPlain(s)) return nullptr;
    }
    sums.shape.insert(sums.shape.begin(), loop->extent);
    slot_ = alloc->slot;
    iteration_ = pool_.Var(loop->var);
    const auto nest = [&](const std::vector<Stmt>& body) {
      Stmt result = WithIteration(ir::MakeSeq(pool_, body));
      for (size_t i = path.size(); i-- > 0;) {
        const Stmt body[] = {result};
        result = ir::WithChildren(pool_, path[i], body);
      }
      return ir::MakeFor(pool_, loop->var, loop->extent, LoopKind::kUnrolled, result);
    };
    const Stmt stores = CopyWithOwnNames(program_, nest(rest), [&](int32_t var) {
      program_.vars.push_back({UniqueName(program_.vars[static_cast<size_t>(var)].name),
                               program_.vars[static_cast<size_t>(var)].extent});
      return static_cast<int32_t>(program_.vars.size()) - 1;
    });
    const Stmt both[] = {nest(sum), stores};
    return ir::MakeAlloc(pool_, alloc->slot, ir::MakeSeq(pool_, both));
  }

  std::string UniqueName(const std::string& name) const {
    const auto taken = [&](const std::string& candidate) {
      return std::ranges::any_of(program_.vars,
                                 [&](const ir::LoopVar& v) { return v.name == candidate; });
    };
    std::string candidate = name;
    for (int i = 1; taken(candidate); ++i) candidate = name + "_" + std::to_string(i);
    return candidate;
  }

  // Loops, conditions and stores.
  static bool IsPlain(Stmt s) {
    if (s->kind == StmtKind::kAlloc || s->kind == StmtKind::kBarrier ||
        s->kind == StmtKind::kCommit)
      return false;
    return std::ranges::all_of(s->children(), IsPlain);
  }

  static bool StoresOnly(Stmt s, int32_t slot) {
    if (!IsPlain(s) || (s->kind == StmtKind::kStore && s->slot != slot)) return false;
    return std::ranges::all_of(s->children(), [&](Stmt c) { return StoresOnly(c, slot); });
  }

  bool ReadsCluster(Stmt s) const {
    bool found = false;
    for (Expr e : s->exprs()) {
      ir::Visit(e, [&](Expr node) {
        found |= node->op == ir::Op::kLoad &&
                 program_.buffers[static_cast<size_t>(node->id)].scope == ir::Scope::kCluster;
      });
    }
    return found || std::ranges::any_of(s->children(), [&](Stmt c) { return ReadsCluster(c); });
  }

  // Accesses of the sums are those of the iteration.
  Stmt WithIteration(Stmt s) {
    switch (s->kind) {
      case StmtKind::kStore: {
        absl::InlinedVector<Expr, 6> indices;
        if (s->slot == slot_) indices.push_back(iteration_);
        for (Expr index : s->indices()) indices.push_back(WithIteration(index));
        return ir::MakeStore(pool_, s->slot, s->stage, indices, WithIteration(s->value()),
                             s->is_async);
      }
      case StmtKind::kSeq: {
        std::vector<Stmt> children;
        for (Stmt child : s->children()) children.push_back(WithIteration(child));
        return ir::MakeSeq(pool_, children);
      }
      case StmtKind::kIf:
        return ir::MakeIf(pool_, WithIteration(s->condition()), WithIteration(s->body()));
      default: {
        const Stmt body[] = {WithIteration(s->body())};
        return ir::WithChildren(pool_, s, body);
      }
    }
  }

  Expr WithIteration(Expr e) {
    if (e->num_args == 0 && e->op != ir::Op::kLoad) return e;
    absl::InlinedVector<Expr, 6> args;
    const bool of_sums = e->op == ir::Op::kLoad && e->id == slot_;
    if (of_sums) args.push_back(iteration_);
    bool changed = of_sums;
    for (Expr a : e->args()) {
      args.push_back(WithIteration(a));
      changed |= args.back() != a;
    }
    if (!changed) return e;
    return e->op == ir::Op::kLoad ? pool_.Load(e->id, args, e->type) : pool_.WithArgs(e, args);
  }

  Program& program_;
  ir::ExprPool& pool_;
  int32_t slot_ = -1;  // of the sums that are split
  Expr iteration_ = nullptr;
};

}  // namespace

void SumBeforeStoring(Program& program) {
  for (ir::Kernel& kernel : program.kernels) {
    if (kernel.cluster > 1) kernel.body = Splitter(program).Rewrite(kernel.body);
  }
}

}  // namespace kiln::lower
