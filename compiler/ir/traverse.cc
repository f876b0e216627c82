#include "compiler/ir/traverse.h"

namespace kiln::ir {

bool UsesVar(Expr e, int32_t var) {
  bool found = false;
  Visit(e, [&](Expr n) { found = found || (n->op == Op::kVar && n->id == var); });
  return found;
}

bool HasLoad(Expr e) {
  bool found = false;
  Visit(e, [&](Expr n) { found = found || n->op == Op::kLoad; });
  return found;
}

}  // namespace kiln::ir
