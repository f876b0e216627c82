// The functions that make nodes and fold them.
#include "compiler/ir/expr.h"

#include <bit>

#include "compiler/ir/integer_ops.h"
#include "compiler/ir/scalar.h"

namespace kiln::ir {

bool IsComparison(Op op) { return op >= Op::kEq && op <= Op::kGe; }
bool IsBits(Op op) { return op >= Op::kBitAnd && op <= Op::kShr; }
bool IsBinary(Op op) { return (op >= Op::kAdd && op <= Op::kOr) || IsBits(op); }

Expr ExprPool::Int(int64_t value, Type type) {
  return Intern(Op::kInt, type, 0, WrapToType(value, type), {});
}

Expr ExprPool::Float(double value, Type type) {
  return Intern(Op::kFloat, type, 0, std::bit_cast<int64_t>(RoundToType(value, type)), {});
}

Expr ExprPool::Var(int32_t id, Type type) { return Intern(Op::kVar, type, id, 0, {}); }

// Applies the identities that hold for integers and bools. Returns null if none applies.
Expr ExprPool::FoldIntegers(Op op, Type type, Expr a, Expr b) {
  if (a->is_const_int() && b->is_const_int()) {
    const auto value = EvaluateBinary(op, a->type, a->int_value, b->int_value);
    return value ? Int(*value, type) : nullptr;
  }
  if (IsBits(op)) return FoldBits(op, type, a, b);
  switch (op) {
    case Op::kAdd:
      if (a->is_const_int(0)) return b;
      if (b->is_const_int(0)) return a;
      return nullptr;
    case Op::kSub:
      if (b->is_const_int(0)) return a;
      if (a == b) return Int(0, type);
      return nullptr;
    case Op::kMul:
      if (a->is_const_int(1)) return b;
      if (b->is_const_int(1)) return a;
      if (a->is_const_int(0)) return a;
      if (b->is_const_int(0)) return b;
      return nullptr;
    case Op::kFloorDiv:
      if (b->is_const_int(1) || a->is_const_int(0)) return a;
      return nullptr;
    case Op::kFloorMod:
      if (b->is_const_int(1)) return Int(0, type);
      if (a->is_const_int(0)) return a;
      return nullptr;
    case Op::kMin:
    case Op::kMax:
      return a == b ? a : nullptr;
    case Op::kAnd:
      if (a->is_const_int(1)) return b;
      if (b->is_const_int(1)) return a;
      if (a->is_const_int(0)) return a;
      if (b->is_const_int(0)) return b;
      return a == b ? a : nullptr;
    case Op::kOr:
      if (a->is_const_int(0)) return b;
      if (b->is_const_int(0)) return a;
      if (a->is_const_int(1)) return a;
      if (b->is_const_int(1)) return b;
      return a == b ? a : nullptr;
    case Op::kEq:
    case Op::kLe:
    case Op::kGe:
      return a == b ? Bool(true) : nullptr;
    case Op::kNe:
    case Op::kLt:
    case Op::kGt:
      return a == b ? Bool(false) : nullptr;
    default:
      return nullptr;
  }
}

Expr ExprPool::FoldBits(Op op, Type type, Expr a, Expr b) {
  const int64_t ones = WrapToType(-1, type);
  const bool is_index = type == kIndex && b->is_const_int();
  switch (op) {
    case Op::kBitAnd:
      if (a == b || b->is_const_int(ones) || a->is_const_int(0)) return a;
      if (b->is_const_int(0) || a->is_const_int(ones)) return b;
      if (is_index && b->int_value > 0 && (b->int_value & (b->int_value + 1)) == 0 &&
          b->int_value < INT64_MAX)
        return FloorMod(a, Int(b->int_value + 1));
      return nullptr;
    case Op::kBitOr:
      if (a == b || b->is_const_int(0) || a->is_const_int(ones)) return a;
      return a->is_const_int(0) || b->is_const_int(ones) ? b : nullptr;
    case Op::kBitXor:
      if (a == b) return Int(0, type);
      if (a->is_const_int(0)) return b;
      if (b->is_const_int(0)) return a;
      if (type.is_bool() && b->is_const_int(1)) return Not(a);
      if (b->is_const_int() && a->op == Op::kBitXor && a->arg(1)->is_const_int())
        return Binary(op, a->arg(0), Int(a->arg(1)->int_value ^ b->int_value, type));
      return nullptr;
    // Shifts.
    default:
      if (a->is_const_int(0) || b->is_const_int(0)) return a;
      if (!is_index || b->int_value < 0 || b->int_value > 62) return nullptr;
      return Binary(op == Op::kShl ? Op::kMul : Op::kFloorDiv, a, Int(int64_t{1} << b->int_value));
  }
}

Expr ExprPool::Binary(Op op, Expr a, Expr b) {
  KILN_CHECK(IsBinary(op) && a->type == b->type, "op {} on {} and {}", static_cast<int>(op),
             TypeName(a->type), TypeName(b->type));
  KILN_CHECK(op != Op::kDiv || a->type.is_float(), "'/' on {}, which needs '//'",
             TypeName(a->type));
  KILN_CHECK((op != Op::kAnd && op != Op::kOr) || a->type.is_bool(), "logic on {}",
             TypeName(a->type));
  KILN_CHECK(!IsBits(op) || a->type.is_int() || (a->type.is_bool() && op <= Op::kBitXor),
             "bits of {}", TypeName(a->type));
  const Type type = IsComparison(op) ? kBool : a->type;
  if (!a->type.is_float()) {
    if (Expr folded = FoldIntegers(op, type, a, b)) return folded;
  }
  const Expr args[] = {a, b};
  return Intern(op, type, 0, 0, args);
}

Expr ExprPool::Not(Expr a) {
  KILN_CHECK(a->type.is_bool(), "'!' on {}", TypeName(a->type));
  if (a->is_const_int()) return Bool(a->int_value == 0);
  if (a->op == Op::kNot) return a->arg(0);
  const Expr args[] = {a};
  return Intern(Op::kNot, kBool, 0, 0, args);
}

Expr ExprPool::Select(Expr condition, Expr a, Expr b) {
  KILN_CHECK(condition->type.is_bool() && a->type == b->type, "choice by {} between {} and {}",
             TypeName(condition->type), TypeName(a->type), TypeName(b->type));
  if (condition->is_const_int()) return condition->int_value ? a : b;
  if (a == b) return a;
  const Expr args[] = {condition, a, b};
  return Intern(Op::kSelect, a->type, 0, 0, args);
}

Expr ExprPool::If(Expr condition, Expr a, Expr b) {
  KILN_CHECK(condition->type.is_bool() && a->type == b->type, "choice by {} between {} and {}",
             TypeName(condition->type), TypeName(a->type), TypeName(b->type));
  if (condition->is_const_int()) return condition->int_value ? a : b;
  const Expr args[] = {condition, a, b};
  return Intern(Op::kIf, a->type, 0, 0, args);
}

Expr ExprPool::Cast(Type type, Expr a) {
  if (a->type == type) return a;
  if (a->op == Op::kInt) {
    const Value value = CastValue(Value::Int(a->int_value), a->type, type);
    return type.is_float() ? Float(value.f, type) : Int(value.i, type);
  }
  if (a->op == Op::kFloat && type.is_float()) return Float(a->float_value, type);
  const Expr args[] = {a};
  return Intern(Op::kCast, type, 0, 0, args);
}

Expr ExprPool::Reinterpret(Type type, Expr a) {
  const Type from = a->type;
  KILN_CHECK(from.bits == type.bits && !type.is_bool() && !from.is_bool(), "the bits of {} as {}",
             TypeName(from), TypeName(type));
  if (from == type) return a;
  if (from.is_int() && type.is_int()) return Cast(type, a);
  // An infinity of an 8-bit type cannot be a constant.
  const bool is_constant = a->op == Op::kInt || a->op == Op::kFloat;
  if (is_constant && Float8FormatOf(type) == nullptr) {
    const Value value = a->op == Op::kInt ? Value::Int(a->int_value) : Value::Float(a->float_value);
    const Value bits = ReinterpretValue(value, from, type);
    return type.is_float() ? Float(bits.f, type) : Int(bits.i, type);
  }
  const Expr args[] = {a};
  return Intern(Op::kReinterpret, type, 0, 0, args);
}

Expr ExprPool::Load(int32_t slot, std::span<const Expr> indices, Type type) {
  KILN_CHECK(indices.size() <= UINT16_MAX, "{} indices", indices.size());
  return Intern(Op::kLoad, type, slot, 0, indices);
}

Expr ExprPool::Call(Intrinsic intrinsic, std::span<const Expr> args) {
  KILN_CHECK(static_cast<int>(args.size()) == IntrinsicArity(intrinsic), "{} of {} arguments",
             IntrinsicName(intrinsic), args.size());
  const Type type = args[0]->type;
  KILN_CHECK(type.is_float() || (intrinsic == Intrinsic::kAbs && type.is_int()), "{} of {}",
             IntrinsicName(intrinsic), TypeName(type));
  for (Expr a : args) {
    KILN_CHECK(a->type == type, "{} of {} and {}", IntrinsicName(intrinsic), TypeName(type),
               TypeName(a->type));
  }
  if (intrinsic == Intrinsic::kAbs && type.is_unsigned()) return args[0];
  return Intern(Op::kCall, args[0]->type, static_cast<int32_t>(intrinsic), 0, args);
}

Expr ExprPool::WithArgs(Expr e, std::span<const Expr> args) {
  switch (e->op) {
    case Op::kInt:
    case Op::kFloat:
    case Op::kVar:
      return Intern(e->op, e->type, e->id, e->int_value, {});
    case Op::kNot:
      return Not(args[0]);
    case Op::kSelect:
      return Select(args[0], args[1], args[2]);
    case Op::kIf:
      return If(args[0], args[1], args[2]);
    case Op::kCast:
      return Cast(e->type, args[0]);
    case Op::kReinterpret:
      return Reinterpret(e->type, args[0]);
    case Op::kLoad:
      return Load(e->id, args, e->type);
    case Op::kCall:
      return Call(e->intrinsic(), args);
    default:
      return Binary(e->op, args[0], args[1]);
  }
}

}  // namespace kiln::ir
