#include "compiler/codegen/cuda/stores.h"

#include <algorithm>
#include <forward_list>

#include "compiler/instructions/async_copy.h"

namespace kiln::codegen {
using ir::Expr;
using ir::Op;
using ir::Stmt;

void CudaStores::Emit(Stmt store) {
  const std::string element =
      exprs_.Element(store->slot, exprs_.PlaceOf(store->slot, store->indices()));
  if (store->is_async && EmitCopy(store, element, /*lanes=*/1)) return;
  const Expr value = store->value();
  const bool is_plain = value->type == ir::kFloat32 || value->type == ir::kFloat64;
  if (is_plain && value->op == Op::kAdd && value->arg(0)->op == Op::kLoad &&
      value->arg(0)->id == store->slot && !exprs_.IsHeld(value->arg(0)) &&
      std::ranges::equal(value->arg(0)->args(), store->indices())) {
    return blocks_.Line(fmt::format("{} += {};", element, exprs_.Print(value->arg(1)).text));
  }
  blocks_.Line(fmt::format("{} = {};", element, exprs_.PrintRaw(value).text));
}

bool CudaStores::EmitCopy(Stmt store, const std::string& to, int lanes) {
  const int64_t bytes = lanes * store->value()->type.bytes();
  if (!instructions::IsAsyncCopySize(bytes)) return false;
  Expr value = store->value();
  std::forward_list<arith::FactScope> facts;  // the innermost first, as they have to end
  std::string conditions;
  for (; value->op != Op::kLoad; value = value->arg(1)) {
    const Expr condition = exprs_.SimplifyCondition(value->arg(0));
    if (condition->is_const_int(0)) return false;
    if (condition->is_const_int()) continue;
    conditions += (conditions.empty() ? "" : " && ") +
                  Wrap(exprs_.PrintSimplified(condition), Precedence::kAnd);
    if (value->op == Op::kIf) facts.emplace_front(scope_.simplifier(), condition);
  }
  const std::string from = exprs_.Element(value->id, exprs_.PlaceOf(value->id, value->args()));
  preamble_.async_copies = true;
  blocks_.Line(conditions.empty()
                   ? fmt::format("copy_async<{}>(&{}, &{});", bytes, to, from)
                   : fmt::format("copy_async_if<{}>({}, &{}, &{});", bytes, conditions, to, from));
  return true;
}

}  // namespace kiln::codegen
