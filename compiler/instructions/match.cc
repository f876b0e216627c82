#include "compiler/instructions/match.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/traverse.h"

namespace kiln::instructions {
namespace {
using ir::Expr;
using ir::Op;
using ir::Stmt;

class Matcher {
 public:
  Matcher(const InstructionBody& body, Stmt store)
      : body_(body), store_(store), loads_(body.program.buffers.size(), nullptr) {}

  bool Run() { return Fits(body_.store->value(), store_->value()); }
  std::vector<Expr> TakeLoads() { return std::move(loads_); }

 private:
  // Returns true if e is `wanted`, an expression of the body, for some operands.
  bool Fits(Expr wanted, Expr e) {
    if (wanted->op != e->op || wanted->type != e->type) return false;
    if (wanted->op == Op::kLoad) return FitsLoad(wanted, e);
    if (wanted->num_args != e->num_args) return false;
    if (wanted->op == Op::kInt || wanted->op == Op::kFloat) return ir::Equal(wanted, e);
    if (wanted->op == Op::kVar || (wanted->op == Op::kCall && wanted->id != e->id)) return false;
    const bool has_orders = wanted->op == Op::kAdd || wanted->op == Op::kMul;
    const std::vector<Expr> before = loads_;
    if (FitsArguments(wanted, e, /*is_swapped=*/false)) return true;
    loads_ = before;
    return has_orders && FitsArguments(wanted, e, /*is_swapped=*/true);
  }

  bool FitsArguments(Expr wanted, Expr e, bool is_swapped) {
    for (int i = 0; i < wanted->num_args; ++i) {
      if (!Fits(wanted->arg(i), e->arg(is_swapped ? wanted->num_args - 1 - i : i))) return false;
    }
    return true;
  }

  bool FitsLoad(Expr wanted, Expr load) {
    if (wanted->id == body_.store->slot)
      return load->id == store_->slot && std::ranges::equal(load->args(), store_->indices());
    Expr& known = loads_[static_cast<size_t>(wanted->id)];
    if (known == nullptr && load->id != store_->slot) known = load;
    return known == load;
  }

  const InstructionBody& body_;
  const Stmt store_;
  std::vector<Expr> loads_;
};

}  // namespace

std::optional<Operands> MatchStore(const InstructionBody& body, Stmt store) {
  Matcher matcher(body, store);
  if (!matcher.Run()) return std::nullopt;
  return Operands{store, matcher.TakeLoads()};
}

bool IsVector(const InstructionBody& body, int32_t slot) {
  bool result = false;
  ir::Visit(body.store->value(), [&](Expr e) {
    if (e->op != Op::kLoad || e->id != slot) return;
    result = std::ranges::any_of(e->args(),
                                 [&](Expr index) { return ir::UsesVar(index, body.loop->var); });
  });
  return result;
}

}  // namespace kiln::instructions
