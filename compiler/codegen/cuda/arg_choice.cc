#include "compiler/codegen/cuda/arg_choice.h"

#include <optional>

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::Op;

// An element, and the best so far.
struct Compared {
  Op better = Op::kGt;  // kGt of argmax, kLt of argmin
  Expr value = nullptr;
  Expr best = nullptr;
};

bool Is(Expr e, Op op, Expr a, Expr b) { return e->op == op && e->arg(0) == a && e->arg(1) == b; }

bool IsNan(Expr e, Expr value) { return Is(e, Op::kNe, value, value); }

// Returns the operands of "!(value is worse) && (value is better || rest)", and sets `rest`.
std::optional<Compared> ComparedOrNull(Expr condition, Expr& rest) {
  if (condition->op != Op::kAnd || condition->arg(0)->op != Op::kNot ||
      condition->arg(1)->op != Op::kOr) {
    return std::nullopt;
  }
  const Expr worse = condition->arg(0)->arg(0), better = condition->arg(1)->arg(0);
  if (worse->op != Op::kLt && worse->op != Op::kGt) return std::nullopt;
  const Compared compared = {worse->op == Op::kLt ? Op::kGt : Op::kLt, worse->arg(0),
                             worse->arg(1)};
  if (!compared.value->type.is_float()) return std::nullopt;
  if (!Is(better, compared.better, compared.value, compared.best)) return std::nullopt;
  rest = condition->arg(1)->arg(1);
  return compared;
}

}  // namespace

Expr ShortIndexChoice(Expr select, ir::ExprPool& pool) {
  if (select->op != Op::kSelect) return nullptr;
  Expr tie = nullptr;
  const std::optional<Compared> compared = ComparedOrNull(select->arg(0), tie);
  if (!compared || tie->op != Op::kAnd) return nullptr;
  const auto [better, value, best] = *compared;
  const Expr is_tie = tie->arg(0), takes_tie = tie->arg(1);
  if (is_tie->op != Op::kOr || !Is(is_tie->arg(0), Op::kEq, value, best) ||
      !IsNan(is_tie->arg(1), value) || takes_tie->op != Op::kOr) {
    return nullptr;
  }
  const Expr is_first = takes_tie->arg(0), is_first_nan = takes_tie->arg(1);
  if (!Is(is_first, Op::kLt, select->arg(1), select->arg(2)) || is_first_nan->op != Op::kAnd ||
      !IsNan(is_first_nan->arg(0), value) || !Is(is_first_nan->arg(1), Op::kEq, best, best)) {
    return nullptr;
  }
  const Expr is_no_better = pool.Binary(better == Op::kGt ? Op::kLe : Op::kGe, value, best);
  return pool.Or(pool.And(pool.Not(is_no_better), is_first_nan->arg(1)),
                 pool.And(is_first, is_tie));
}

Expr ExtremeOfValueChoice(Expr select, ir::ExprPool& pool) {
  if (select->op != Op::kSelect || select->type != ir::kFloat32) return nullptr;
  Expr is_nan = nullptr;
  const std::optional<Compared> compared = ComparedOrNull(select->arg(0), is_nan);
  if (!compared) return nullptr;
  const auto [better, value, best] = *compared;
  if (!IsNan(is_nan, value) || select->arg(1) != value || select->arg(2) != best) return nullptr;
  return better == Op::kGt ? pool.Max(best, value) : pool.Min(best, value);
}

}  // namespace kiln::codegen
