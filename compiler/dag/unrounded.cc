#include "compiler/dag/unrounded.h"

#include <vector>

namespace kiln::dag {
namespace {

using ir::Expr;
using ir::Op;

bool IsHalf(ir::Type type) { return type.is_float() && type.bits == 16; }
bool IsWide(ir::Type type) { return type.is_float() && type.bits >= 16; }
bool IsTaken(ir::Type type) { return IsHalf(type) || type == ir::kFloat32; }

}  // namespace

Expr Unrounded(ir::ExprPool& pool, Expr e) {
  if (!IsTaken(e->type)) return e;
  std::vector<Expr> args(e->args().begin(), e->args().end());
  switch (e->op) {
    case Op::kFloat:
      return pool.Float(e->float_value, ir::kFloat32);
    case Op::kCast:
      return pool.Cast(ir::kFloat32, Unrounded(pool, e->arg(0)));
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kMin:
    case Op::kMax:
    case Op::kCall:
    case Op::kSelect:
    case Op::kIf:
      for (Expr& arg : args) arg = Unrounded(pool, arg);
      return pool.WithArgs(e, args);
    default:
      return pool.Cast(ir::kFloat32, e);
  }
}

std::optional<ScaledLoad> AsScaledLoad(Expr e) {
  double scale = 1;
  while (e->op != Op::kLoad) {
    if (e->op == Op::kCast && IsWide(e->type) && IsWide(e->arg(0)->type)) {
      e = e->arg(0);
    } else if (e->op == Op::kMul && e->arg(1)->op == Op::kFloat) {
      scale *= e->arg(1)->float_value;
      e = e->arg(0);
    } else if (e->op == Op::kMul && e->arg(0)->op == Op::kFloat) {
      scale *= e->arg(0)->float_value;
      e = e->arg(1);
    } else if (e->op == Op::kDiv && e->arg(1)->op == Op::kFloat && e->arg(1)->float_value != 0) {
      scale /= e->arg(1)->float_value;
      e = e->arg(0);
    } else {
      return std::nullopt;
    }
  }
  return ScaledLoad{e, scale};
}

}  // namespace kiln::dag
