#include "compiler/lower/separate_sums.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/matrix_unit_scope.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/traverse.h"
#include "compiler/lower/whole_tiles.h"

namespace kiln::lower {
namespace {

using ir::Expr;
using ir::Stmt;
using ir::StmtKind;

class Separator {
 public:
  Separator(ir::Program& program, std::vector<LoopOwner>& owners)
      : program_(program), pool_(*program.pool), owners_(owners) {}

  Stmt Rewrite(Stmt s) {
    if (s->kind == StmtKind::kFor) {
      if (const std::span<const Stmt> sums = SumsIn(s); !sums.empty()) return Separate(s, sums);
    }
    return ir::RewriteChildren(pool_, s, [&](Stmt child) { return Rewrite(child); });
  }

 private:
  // Returns the sums in the innermost loop, where the loop has nothing but loops and them inside.
  std::span<const Stmt> SumsIn(Stmt loop) const {
    Stmt inside = loop;
    for (; inside->kind == StmtKind::kFor; inside = inside->body()) {
      if (inside->loop_kind != ir::LoopKind::kSerial) return {};
    }
    if (inside->kind != StmtKind::kSeq || inside->num_children < 2) return {};
    const std::span<const Stmt> stores = inside->children();
    std::set<int32_t> slots;
    for (const Stmt store : stores) {
      if (!IsSum(store)) return {};
      slots.insert(store->slot);
    }
    if (slots.size() != stores.size()) return {};
    const auto reads_others = [&](Stmt store) { return ReadsOther(store, slots); };
    return std::ranges::any_of(stores, reads_others) ? std::span<const Stmt>() : stores;
  }

  bool IsSum(Stmt store) const {
    return store->kind == StmtKind::kStore && instructions::AddedBy(store) != nullptr &&
           program_.buffers[static_cast<size_t>(store->slot)].scope == ir::Scope::kLocal &&
           instructions::UsesMatrixUnits(program_, store);
  }

  static bool ReadsOther(Stmt store, const std::set<int32_t>& slots) {
    bool found = false;
    for (const Expr e : store->exprs()) {
      ir::Visit(e, [&](Expr load) {
        found |= load->op == ir::Op::kLoad && load->id != store->slot && slots.contains(load->id);
      });
    }
    return found;
  }

  Stmt Separate(Stmt loop, std::span<const Stmt> sums) {
    std::vector<Stmt> nests;
    for (const Stmt sum : sums) {
      const Stmt nest = WithInnermost(loop, sum);
      nests.push_back(nests.empty() ? nest : WithOwnVars(nest));
    }
    return ir::MakeSeq(pool_, nests);
  }

  Stmt WithInnermost(Stmt loop, Stmt body) {
    if (loop->kind != StmtKind::kFor) return body;
    return ir::WithBody(pool_, loop, WithInnermost(loop->body(), body));
  }

  Stmt WithOwnVars(Stmt nest) {
    return CopyWithOwnNames(program_, nest, [&](int32_t var) {
      const ir::LoopVar like = program_.vars[static_cast<size_t>(var)];
      owners_.push_back(LoopOwner(owners_[static_cast<size_t>(var)]));
      return ir::AddVar(program_, like.name, like.extent);
    });
  }

  ir::Program& program_;
  ir::ExprPool& pool_;
  std::vector<LoopOwner>& owners_;
};

}  // namespace

void SeparateSums(ir::Program& program, std::vector<LoopOwner>& owners) {
  for (ir::Kernel& kernel : program.kernels)
    kernel.body = Separator(program, owners).Rewrite(kernel.body);
}

}  // namespace kiln::lower
