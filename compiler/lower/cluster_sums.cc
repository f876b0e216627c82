#include "compiler/lower/cluster_sums.h"

#include <algorithm>
#include <vector>

#include "compiler/ir/rewrite.h"
#include "compiler/ir/substitution.h"
#include "compiler/ir/traverse.h"
#include "compiler/lower/whole_tiles.h"

namespace kiln::lower {
namespace {

using ir::Expr;
using ir::LoopKind;
using ir::Program;
using ir::Stmt;
using ir::StmtKind;

constexpr int64_t kMaxWords = 64;

class Splitter {
 public:
  explicit Splitter(Program& program) : program_(program), pool_(*program.pool) {}

  Stmt Rewrite(Stmt s) {
    if (s->kind == StmtKind::kFor && s->extent > 1 &&
        (s->loop_kind == LoopKind::kSerial || s->loop_kind == LoopKind::kUnrolled)) {
      if (const Stmt split = Split(s)) return split;
    }
    return ir::RewriteChildren(pool_, s, [&](Stmt child) { return Rewrite(child); });
  }

 private:
  // Returns null if the loop has another form.
  Stmt Split(Stmt loop) {
    // Statements between the loop and the registers.
    std::vector<Stmt> path;
    Stmt alloc = loop->body();
    for (; alloc->kind != StmtKind::kAlloc; alloc = alloc->body()) {
      const bool is_bound = alloc->kind == StmtKind::kFor && alloc->loop_kind >= LoopKind::kBlockX;
      const bool is_guard = alloc->kind == StmtKind::kIf && !ir::HasLoad(alloc->condition());
      if (!is_bound && !is_guard) return nullptr;
      path.push_back(alloc);
    }
    ir::Buffer& sums = program_.buffers[static_cast<size_t>(alloc->slot)];
    if (sums.scope != ir::Scope::kLocal || alloc->body()->kind != StmtKind::kSeq ||
        loop->extent * ((sums.bytes() + 3) / 4) > kMaxWords)
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
    // Accesses of the sums are those of the iteration.
    ir::Substitution names;
    names.SetFirstIndex(alloc->slot, pool_.Var(loop->var));
    const auto nest = [&](const std::vector<Stmt>& body) {
      Stmt result = ir::Substitute(pool_, ir::MakeSeq(pool_, body), names);
      for (size_t i = path.size(); i-- > 0;) result = ir::WithBody(pool_, path[i], result);
      return ir::WithKind(pool_, loop, LoopKind::kUnrolled, result);
    };
    const Stmt stores = CopyWithOwnNames(program_, nest(rest), [&](int32_t var) {
      const ir::LoopVar like = program_.vars[static_cast<size_t>(var)];
      return ir::AddVar(program_, like.name, like.extent);
    });
    const Stmt both[] = {nest(sum), stores};
    return ir::MakeAlloc(pool_, alloc->slot, ir::MakeSeq(pool_, both));
  }

  // Returns true for loops, conditions and stores.
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

  Program& program_;
  ir::ExprPool& pool_;
};

}  // namespace

void SumBeforeStoring(Program& program) {
  for (ir::Kernel& kernel : program.kernels) {
    if (kernel.cluster > 1) kernel.body = Splitter(program).Rewrite(kernel.body);
  }
}

}  // namespace kiln::lower
