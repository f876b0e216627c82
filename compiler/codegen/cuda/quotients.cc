#include "compiler/codegen/cuda/quotients.h"

#include "compiler/ir/traverse.h"

namespace kiln::codegen {
using ir::Expr;
using ir::Op;

void QuotientNames::Enter(int32_t var, bool is_loop) {
  ++depth_.all;
  if (is_loop) ++depth_.loops;
  depth_of_var_[var] = depth_;
}

void QuotientNames::Leave(bool is_loop) {
  --depth_.all;
  if (is_loop) --depth_.loops;
}

void QuotientNames::Note(Expr quotient) {
  if (!is_noting_) return;
  int32_t innermost = -1;
  bool has_load = false;
  ir::Visit(quotient, [&](Expr node) {
    if (node->op == Op::kLoad) has_load = true;
    if (node->op != Op::kVar) return;
    if (innermost < 0 || depth_of_var_[node->id].all > depth_of_var_[innermost].all)
      innermost = node->id;
  });
  if (has_load || innermost < 0) return;
  const auto [at, is_new] = uses_.try_emplace(quotient);
  if (is_new) {
    at->second.var = innermost;
    order_.push_back(quotient);
  }
  if (!is_new || depth_.loops > depth_of_var_[innermost].loops) at->second.is_worth = true;
}

std::vector<Expr> QuotientNames::ToName(int32_t var) const {
  std::vector<Expr> result;
  if (is_noting_) return result;
  for (Expr e : order_) {
    const Uses& uses = uses_.at(e);
    if (uses.var == var && uses.is_worth) result.push_back(e);
  }
  return result;
}

const QuotientNames::Name* QuotientNames::NameOrNull(Expr e) const {
  const auto found = uses_.find(e);
  return found == uses_.end() || found->second.name.text.empty() ? nullptr : &found->second.name;
}

}  // namespace kiln::codegen
