#include <unordered_map>

#include "compiler/ir/expr.h"

namespace kiln::ir {
namespace {

bool SameNode(Expr a, Expr b) {
  return a->hash == b->hash && a->op == b->op && a->type == b->type && a->id == b->id &&
         a->int_value == b->int_value && a->num_args == b->num_args;
}

// `compared` maps each compared node of a to the equal node of b. Within one pool there is only one
// such node.
bool EqualNodes(Expr a, Expr b, std::unordered_map<Expr, Expr>& compared, int& budget) {
  if (a == b) return true;
  if (!SameNode(a, b)) return false;
  // Small expressions are compared as trees; a large one may share so much that its tree is
  // endless.
  if (--budget < 0) {
    if (auto [it, is_new] = compared.try_emplace(a, b); !is_new) return it->second == b;
  }
  for (int i = 0; i < a->num_args; ++i) {
    if (!EqualNodes(a->arg(i), b->arg(i), compared, budget)) return false;
  }
  return true;
}
}  // namespace

bool Equal(Expr a, Expr b) {
  if (a == b) return true;
  std::unordered_map<Expr, Expr> compared;
  int budget = 64;
  return EqualNodes(a, b, compared, budget);
}

}  // namespace kiln::ir
