#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/arith/range.h"
#include "compiler/codegen/cuda_emit.h"

namespace kiln::codegen {
namespace {
using arith::Interval;
using arith::Linear;
using ir::Expr;
using ir::Op;
using ir::Type;

bool FitsInt(Interval r) { return arith::RangeOfType(ir::kInt32).Contains(r); }
bool IsIndex(Expr e) { return e->type == ir::kIndex; }
bool IsHalf(Type type) { return type == ir::kFloat16 || type == ir::kBFloat16; }

std::string_view Operator(Op op) {
  switch (op) {
    case Op::kAdd:
      return "+";
    case Op::kSub:
      return "-";
    case Op::kMul:
      return "*";
    case Op::kDiv:
      return "/";
    case Op::kEq:
      return "==";
    case Op::kNe:
      return "!=";
    case Op::kLt:
      return "<";
    case Op::kLe:
      return "<=";
    case Op::kGt:
      return ">";
    case Op::kGe:
      return ">=";
    case Op::kAnd:
      return "&&";
    default:
      return "||";
  }
}

std::string FloatText(double value, Type type) {
  const bool is_double = type == ir::kFloat64;
  if (!std::isfinite(value)) {
    if (is_double) {
      return std::isnan(value) ? "__longlong_as_double(0x7ff8000000000000LL)"
             : value > 0       ? "__longlong_as_double(0x7ff0000000000000LL)"
                               : "-__longlong_as_double(0x7ff0000000000000LL)";
    }
    return std::isnan(value) ? "__int_as_float(0x7fc00000)"
           : value > 0       ? "__int_as_float(0x7f800000)"
                             : "-__int_as_float(0x7f800000)";
  }
  std::string text =
      is_double ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return is_double ? text : text + "f";
}

std::string IntText(int64_t value) {
  if (value == INT64_MIN) return "(-9223372036854775807LL - 1)";
  if (value == INT32_MIN) return "(-2147483647 - 1)";
  return value > INT32_MAX || value < INT32_MIN ? fmt::format("{}LL", value)
                                                : fmt::format("{}", value);
}
}  // namespace

std::string CudaTypeName(Type type) {
  if (type.is_bool()) return "bool";
  if (type == ir::kInt8) return "signed char";
  if (type == ir::kInt32) return "int";
  if (type == ir::kInt64) return "long long";
  if (type == ir::kFloat16) return "__half";
  if (type == ir::kBFloat16) return "__nv_bfloat16";
  return type == ir::kFloat64 ? "double" : "float";
}

std::string CudaEmitter::Wrap(const Text& text, Precedence at_least) {
  return text.precedence >= at_least ? text.text : "(" + text.text + ")";
}

// Loads that a vector load has done stay what they are, to be found in lanes_.
Expr CudaEmitter::KeepLane(Expr load) {
  if (lanes_.contains(load)) return load;
  std::vector<Expr> indices;
  for (Expr index : load->args()) indices.push_back(Simplify(index));
  return pool_.Load(load->id, indices, load->type);
}

Expr CudaEmitter::Simplify(Expr e) {
  if (lanes_.empty()) return simplifier_.Simplify(e, &env_);
  const auto keep = [this](Expr load) { return KeepLane(load); };
  const arith::Simplifier::LoadFn load(keep);
  return simplifier_.Simplify(e, &env_, &load);
}

Linear CudaEmitter::ToLinear(Expr e) {
  if (lanes_.empty()) return simplifier_.ToLinear(e, &env_);
  const auto keep = [this](Expr load) { return KeepLane(load); };
  const arith::Simplifier::LoadFn load(keep);
  return simplifier_.ToLinear(e, &env_, &load);
}

Expr CudaEmitter::SimplifyCondition(Expr condition) {
  if (condition->op != Op::kAnd) return Simplify(condition);
  const Expr first = SimplifyCondition(condition->arg(0));
  if (first->is_const_int())
    return first->int_value != 0 ? SimplifyCondition(condition->arg(1)) : first;
  const arith::FactScope facts(simplifier_, first);
  const Expr second = SimplifyCondition(condition->arg(1));
  if (second->is_const_int()) return second->int_value != 0 ? first : second;
  return pool_.And(first, second);
}

CudaEmitter::Text CudaEmitter::Print(Expr e) {
  if (e->op == Op::kLoad) return PrintLoad(e);
  if (const auto found = lanes_.find(e); found != lanes_.end())
    return FromMemory(e->type, 0, found->second);
  if (e->type.is_bool() && e->op != Op::kCast) return PrintSimplified(Simplify(e));
  if (IsIndex(e) && e->op != Op::kCall) return PrintSimplified(simplifier_.ToExpr(ToLinear(e)));
  if (e->op == Op::kCast && !e->type.is_bool()) {
    const Expr from = e->arg(0);
    if (from->type.is_bool()) return PrintSimplified(pool_.Cast(e->type, Simplify(from)));
    if (IsIndex(from) && from->op != Op::kCall && from->op != Op::kLoad)
      return PrintSimplified(pool_.Cast(e->type, simplifier_.ToExpr(ToLinear(from))));
  }
  return PrintSimplified(e);
}

// Index arithmetic and conditions below a simplified node are simplified too.
CudaEmitter::Text CudaEmitter::Child(Expr e) {
  const bool is_simplified = (IsIndex(e) || e->type.is_bool()) && e->op != Op::kLoad;
  return is_simplified ? PrintSimplified(e) : Print(e);
}

CudaEmitter::Text CudaEmitter::PrintSimplified(Expr e) {
  if (--budget_ < 0) return {"0"};
  switch (e->op) {
    case Op::kInt:
    case Op::kFloat:
      return PrintConstant(e);
    case Op::kVar: {
      const Interval range = RangeOf(e);
      return {var_names_[static_cast<size_t>(e->id)], kPrimary, !FitsInt(range)};
    }
    case Op::kFloorDiv:
    case Op::kFloorMod:
      return IsIndex(e) ? PrintNamed(e) : PrintDivision(e);
    case Op::kAnd:
    case Op::kOr:
    case Op::kNot:
      return PrintLogic(e);
    case Op::kSelect:
    case Op::kIf:
      return PrintChoice(e);
    case Op::kCast:
      return PrintCast(e);
    case Op::kLoad:
      return PrintLoad(e);
    case Op::kCall:
      return PrintCall(e);
    default:
      return PrintBinary(e);
  }
}

CudaEmitter::Text CudaEmitter::PrintConstant(Expr e) {
  if (e->type.is_bool()) return {e->int_value != 0 ? "true" : "false"};
  const std::string text =
      e->op == Op::kInt ? IntText(e->int_value) : FloatText(e->float_value, e->type);
  const bool is_long =
      e->op == Op::kInt && IsIndex(e) && (e->int_value > INT32_MAX || e->int_value < INT32_MIN);
  return {text, text[0] == '-' ? kUnary : kPrimary, is_long};
}

CudaEmitter::Text CudaEmitter::PrintBinary(Expr e) {
  const Text a = Child(e->arg(0)), b = Child(e->arg(1));
  if (e->op == Op::kMin || e->op == Op::kMax) return PrintMinMax(e, a, b);
  if (ir::IsComparison(e->op)) {
    const Precedence own = e->op == Op::kEq || e->op == Op::kNe ? kEquality : kRelation;
    return {fmt::format("{} {} {}", Wrap(a, kSum), Operator(e->op), Wrap(b, kSum)), own};
  }
  if (IsIndex(e)) return PrintIndexBinary(e, a, b);
  const Precedence own = e->op == Op::kAdd || e->op == Op::kSub ? kSum : kProduct;
  const std::string text = fmt::format("{} {} {}", Wrap(a, own), Operator(e->op),
                                       Wrap(b, static_cast<Precedence>(own + 1)));
  if (e->type == ir::kInt8) return {fmt::format("static_cast<signed char>({})", text)};
  return {text, own};
}

CudaEmitter::Text CudaEmitter::PrintIndexBinary(Expr e, Text a, Text b) {
  const bool is_long = a.is_long || b.is_long || !FitsInt(RangeOf(e));
  const Precedence own = e->op == Op::kMul ? kProduct : kSum;
  if (is_long && !a.is_long && !b.is_long) a = {"(long long)" + Wrap(a, kUnary), kUnary, true};
  return {fmt::format("{} {} {}", Wrap(a, own), Operator(e->op),
                      Wrap(b, static_cast<Precedence>(own + 1))),
          own, is_long};
}

CudaEmitter::Text CudaEmitter::PrintMinMax(Expr e, const Text& a, const Text& b) {
  const std::string_view name = e->op == Op::kMin ? "min" : "max";
  if (e->type.is_float()) {
    return {fmt::format("f{}{}({}, {})", name, e->type == ir::kFloat64 ? "" : "f", a.text, b.text)};
  }
  const bool is_long = IsIndex(e) && (a.is_long || b.is_long);
  const auto argument = [&](const Text& t) {
    return is_long && !t.is_long ? "(long long)" + Wrap(t, kUnary) : t.text;
  };
  if (e->type.is_int() && e->type.bits < 32) {
    return {fmt::format("static_cast<signed char>({}({}, {}))", name, a.text, b.text)};
  }
  return {fmt::format("{}({}, {})", name, argument(a), argument(b)), kPrimary, is_long};
}

CudaEmitter::Text CudaEmitter::PrintDivision(Expr e) {
  const Text a = Child(e->arg(0)), b = Child(e->arg(1));
  const bool is_div = e->op == Op::kFloorDiv;
  const bool is_long = IsIndex(e) && (a.is_long || b.is_long);
  if (IsIndex(e) && RangeOf(e->arg(0)).lo >= 0 && RangeOf(e->arg(1)).lo > 0) {
    return {fmt::format("{} {} {}", Wrap(a, kProduct), is_div ? "/" : "%", Wrap(b, kUnary)),
            kProduct, is_long};
  }
  (is_div ? preamble_.floor_div : preamble_.floor_mod) = true;
  const std::string call = fmt::format("{}<{}>({}, {})", is_div ? "floor_div" : "floor_mod",
                                       is_long ? "long long" : "int", a.text, b.text);
  if (e->type == ir::kInt8) return {fmt::format("static_cast<signed char>({})", call)};
  return {call, kPrimary, is_long};
}

CudaEmitter::Text CudaEmitter::PrintNamed(Expr e) {
  const auto found = named_.find(e);
  if (found != named_.end() && !found->second.name.empty())
    return {found->second.name, kPrimary, found->second.is_long};
  const Text text = PrintDivision(e);
  if (is_first_pass_) NameQuotient(e);
  return text;
}

void CudaEmitter::NameQuotient(Expr e) {
  int32_t innermost = -1;
  bool has_load = false;
  ir::Visit(e, [&](Expr node) {
    if (node->op == Op::kLoad) has_load = true;
    if (node->op != Op::kVar) return;
    if (innermost < 0 || depth_of_var_[node->id] > depth_of_var_[innermost]) innermost = node->id;
  });
  if (has_load || innermost < 0) return;
  const auto [at, is_new] = named_.try_emplace(e);
  if (is_new) {
    at->second.var = innermost;
    named_order_.push_back(e);
  }
  if (!is_new || serial_depth_ > serial_depth_of_var_[innermost]) at->second.is_worth = true;
}

CudaEmitter::Text CudaEmitter::PrintLogic(Expr e) {
  if (e->op == Op::kNot) return {"!" + Wrap(Child(e->arg(0)), kUnary), kUnary};
  const Precedence own = e->op == Op::kAnd ? kAnd : kOr;
  // && inside || gets parentheses, as compilers like it.
  const auto operand = [&](Expr arg) {
    const Text text = Child(arg);
    return Wrap(text, text.precedence == own ? own : kEquality);
  };
  const std::string a = operand(e->arg(0));
  return {fmt::format("{} {} {}", a, Operator(e->op), operand(e->arg(1))), own};
}

CudaEmitter::Text CudaEmitter::PrintChoice(Expr e) {
  const Expr condition = SimplifyCondition(e->arg(0));
  if (condition->is_const_int()) return Child(e->arg(condition->int_value != 0 ? 1 : 2));
  const Text c = PrintSimplified(condition), b = Child(e->arg(2));
  std::optional<arith::FactScope> facts;
  if (e->op == Op::kIf) facts.emplace(simplifier_, condition);
  const Text a = Child(e->arg(1));
  const bool is_long = a.is_long || b.is_long;
  return {fmt::format("{} ? {} : {}", Wrap(c, kOr), Wrap(a, kOr), Wrap(b, kOr)), kTernary, is_long};
}

CudaEmitter::Text CudaEmitter::PrintCast(Expr e) {
  const Type from = e->arg(0)->type, to = e->type;
  const Text a = Child(e->arg(0));
  if (from == to) return a;
  if (to.is_bool()) return {fmt::format("{} != 0", Wrap(a, kSum)), kEquality};
  if (IsHalf(to)) {
    (to == ir::kFloat16 ? preamble_.half : preamble_.bfloat) = true;
    return FromMemory(
        to, 0,
        ToMemory(to, from == ir::kFloat64 ? Text{fmt::format("{}", a.text), kTernary, true} : a));
  }
  if (to == ir::kFloat32 && IsHalf(from)) return a;
  if (to == ir::kIndex && (from.is_int() || from.is_bool())) {
    if (from.is_int()) return a;
    return {fmt::format("static_cast<int>({})", a.text)};
  }
  if (to == ir::kInt32 && from == ir::kIndex && !a.is_long) return a;
  return {fmt::format("static_cast<{}>({})", CudaTypeName(to), a.text), kPrimary, to == ir::kIndex};
}

CudaEmitter::Text CudaEmitter::PrintCall(Expr e) {
  std::string args;
  for (Expr arg : e->args()) args += (args.empty() ? "" : ", ") + Child(arg).text;
  const bool is_double = e->type == ir::kFloat64;
  const std::string suffix = is_double ? "" : "f";
  switch (e->intrinsic()) {
    case ir::Intrinsic::kSigmoid:
      preamble_.sigmoid = true;
      return {fmt::format("sigmoid({})", args)};
    case ir::Intrinsic::kAbs:
      if (e->type == ir::kInt8) return {fmt::format("static_cast<signed char>(abs({}))", args)};
      if (e->type == ir::kInt64) return {fmt::format("llabs({})", args), kPrimary, true};
      if (e->type.is_int()) return {fmt::format("abs({})", args)};
      return {fmt::format("fabs{}({})", suffix, args)};
    case ir::Intrinsic::kRound:
      return {fmt::format("rint{}({})", suffix, args)};
    default:
      return {fmt::format("{}{}({})", ir::IntrinsicName(e->intrinsic()), suffix, args)};
  }
}

CudaEmitter::Text CudaEmitter::PrintLoad(Expr e) {
  const auto found = lanes_.find(e);
  return FromMemory(
      e->type, buffer(e->id).index_limit,
      found != lanes_.end() ? found->second : Element(e->id, PlaceOf(e->id, e->args())));
}

// index_limit: of the buffer, when its elements are indices.
CudaEmitter::Text CudaEmitter::FromMemory(Type type, int64_t index_limit, const std::string& raw) {
  if (type == ir::kFloat16) return {fmt::format("__half2float({})", raw)};
  if (type == ir::kBFloat16) return {fmt::format("__bfloat162float({})", raw)};
  if (type != ir::kInt64) return {raw};
  if (index_limit > 0 && index_limit <= INT32_MAX)
    return {fmt::format("static_cast<int>({})", raw)};
  return {raw, kPrimary, true};
}

std::string CudaEmitter::ToMemory(Type type, const Text& value) {
  if (type == ir::kFloat16) {
    return value.is_long ? fmt::format("__double2half({})", value.text)
                         : fmt::format("__float2half_rn({})", value.text);
  }
  if (type == ir::kBFloat16) {
    return value.is_long ? fmt::format("__double2bfloat16({})", value.text)
                         : fmt::format("__float2bfloat16_rn({})", value.text);
  }
  return value.text;
}

CudaEmitter::Text CudaEmitter::PrintRaw(Expr e) {
  if (!IsHalf(e->type)) return Print(e);
  // What is only moved is not converted.
  if (const auto found = lanes_.find(e); found != lanes_.end()) return {found->second};
  if (e->op == Op::kLoad) return {Element(e->id, PlaceOf(e->id, e->args()))};
  if (e->op == Op::kIf || e->op == Op::kSelect) {
    const Expr condition = SimplifyCondition(e->arg(0));
    if (condition->is_const_int()) return PrintRaw(e->arg(condition->int_value != 0 ? 1 : 2));
    const Text c = PrintSimplified(condition), b = PrintRaw(e->arg(2));
    std::optional<arith::FactScope> facts;
    if (e->op == Op::kIf) facts.emplace(simplifier_, condition);
    const Text a = PrintRaw(e->arg(1));
    return {fmt::format("{} ? {} : {}", Wrap(c, kOr), Wrap(a, kOr), Wrap(b, kOr)), kTernary};
  }
  return {ToMemory(e->type, Print(e))};
}

CudaEmitter::Place CudaEmitter::PlaceOf(int32_t slot, std::span<const Expr> indices) {
  std::vector<Linear> linear;
  linear.reserve(indices.size());
  for (Expr index : indices) {
    linear.push_back(ToLinear(IsIndex(index) ? index : pool_.Cast(ir::kIndex, index)));
  }
  const std::span<const int64_t> shape = buffer(slot).shape;
  if (buffer(slot).scope != ir::Scope::kCluster)
    return {arith::Flatten(simplifier_, linear, shape), std::nullopt};
  // The first dimension is the block whose shared memory holds it.
  return {arith::Flatten(simplifier_, std::span(linear).subspan(1), shape.subspan(1)), linear[0]};
}

std::string CudaEmitter::Element(int32_t slot, const Place& place) {
  if (const auto found = in_registers_.find(slot); found != in_registers_.end())
    return found->second;
  const std::string& name = buffer_names_[static_cast<size_t>(slot)];
  const std::string offset = PrintSimplified(simplifier_.ToExpr(place.offset)).text;
  if (!place.block) return fmt::format("{}[{}]", name, offset);
  const Expr block = simplifier_.ToExpr(*place.block);
  if (block->op == Op::kVar && cluster_vars_.contains(block->id))
    return fmt::format("{}[{}]", name, offset);
  preamble_.cluster = true;
  return fmt::format("in_block({}, {})[{}]", name, PrintSimplified(block).text, offset);
}

// Of an expression of the simplifier. Loads of indices are known to lie in their limit.
Interval CudaEmitter::RangeOf(Expr e) {
  if (e->op == Op::kVar) return simplifier_.RangeOf(e);
  if (e->op == Op::kLoad && buffer(e->id).index_limit > 0)
    return Interval::Of(0, buffer(e->id).index_limit - 1);
  return arith::RangeOfNode(e, [this](Expr operand) { return RangeOf(operand); });
}

}  // namespace kiln::codegen
