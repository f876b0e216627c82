#include "compiler/lower/cluster_sums.h"

#include <algorithm>
#include <span>
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
    Stmt body = loop->body();
    for (; body->kind != StmtKind::kAlloc; body = body->body()) {
      const bool is_bound = body->kind == StmtKind::kFor && body->loop_kind >= LoopKind::kBlockX;
      const bool is_guard = body->kind == StmtKind::kIf && !ir::HasLoad(body->condition());
      if (!is_bound && !is_guard) return nullptr;
      path.push_back(body);
    }
    // The registers of all values of a sum.
    std::vector<int32_t> slots;
    int64_t words = 0;
    for (; body->kind == StmtKind::kAlloc; body = body->body()) {
      const ir::Buffer& sums = program_.buffers[static_cast<size_t>(body->slot)];
      if (sums.scope != ir::Scope::kLocal) return nullptr;
      slots.push_back(body->slot);
      words += loop->extent * ((sums.bytes() + 3) / 4);
    }
    if (body->kind != StmtKind::kSeq || words > kMaxWords) return nullptr;
    const auto statements = body->children();
    size_t first = 0;
    bool adds = false;
    while (first < statements.size() && StoresOnly(statements[first], slots))
      adds |= ReadsCluster(statements[first++]);
    const std::vector<Stmt> sum(statements.begin(), statements.begin() + first);
    const std::vector<Stmt> rest(statements.begin() + first, statements.end());
    if (!adds || rest.empty()) return nullptr;
    for (Stmt s : rest) {
      if (ReadsCluster(s) || !IsPlain(s)) return nullptr;
    }
    // Accesses of the sums are those of the iteration.
    ir::Substitution names;
    for (const int32_t slot : slots) {
      std::vector<int64_t>& shape = program_.buffers[static_cast<size_t>(slot)].shape;
      shape.insert(shape.begin(), loop->extent);
      names.SetFirstIndex(slot, pool_.Var(loop->var));
    }
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
    Stmt result = ir::MakeSeq(pool_, both);
    for (size_t i = slots.size(); i-- > 0;) result = ir::MakeAlloc(pool_, slots[i], result);
    return result;
  }

  // Returns true for loops, conditions and stores.
  static bool IsPlain(Stmt s) {
    if (s->kind == StmtKind::kAlloc || s->kind == StmtKind::kBarrier ||
        s->kind == StmtKind::kCommit)
      return false;
    return std::ranges::all_of(s->children(), IsPlain);
  }

  static bool StoresOnly(Stmt s, std::span<const int32_t> slots) {
    const bool is_other =
        s->kind == StmtKind::kStore && std::ranges::find(slots, s->slot) == slots.end();
    if (!IsPlain(s) || is_other) return false;
    return std::ranges::all_of(s->children(), [&](Stmt c) { return StoresOnly(c, slots); });
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
