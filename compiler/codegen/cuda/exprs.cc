#include "compiler/codegen/cuda/exprs.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "compiler/arith/range.h"
#include "compiler/codegen/cuda/arg_choice.h"
#include "compiler/codegen/cuda/data_conditions.h"
#include "compiler/codegen/cuda/narrow_floats.h"
#include "compiler/codegen/cuda/types.h"
#include "compiler/codegen/cuda/value_functions.h"
#include "compiler/ir/infix.h"
#include "compiler/ir/integer_ops.h"
#include "compiler/ir/scalar.h"

namespace kiln::codegen {
namespace {
using arith::Interval;
using arith::Linear;
using ir::Expr;
using ir::Op;
using ir::Type;
using enum Precedence;

bool FitsInt(Interval r) { return arith::RangeOfType(ir::kInt32).Contains(r); }
bool IsIndex(Expr e) { return e->type == ir::kIndex; }

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

// A byte becomes the last bits of 2^23, from which the rest is subtracted: conversions are slower
// than sums. Nothing: it is no integer.
std::optional<CudaText> ConvertedByte(Type from, const CudaText& byte) {
  if (from != ir::kInt8 && from != ir::kUInt8) return std::nullopt;
  const bool is_signed = from == ir::kInt8;
  return CudaText{
      fmt::format("__uint_as_float(({} & 0xffu) ^ {}) - {}", Wrap(byte, Precedence::kUnary),
                  is_signed ? "0x4b000080u" : "0x4b000000u",
                  is_signed ? "8388736.0f" : "8388608.0f"),
      Precedence::kSum};
}

// C computes integers narrower than int as int: the result is brought back.
CudaText Narrowed(Type type, const CudaText& text) {
  if (!type.is_int() || type.bits >= 32) return text;
  return {fmt::format("static_cast<{}>({})", CudaTypeName(type), text.text)};
}

Precedence Tighter(Precedence p) { return static_cast<Precedence>(static_cast<int>(p) + 1); }

// index_limit: of the buffer, when its elements are indices.
CudaText FromMemory(Type type, int64_t index_limit, const std::string& raw) {
  if (const std::string_view name = NarrowFloatName(type); !name.empty())
    return {fmt::format("{}_to_float({})", name, raw)};
  if (type != ir::kInt64) return {raw};
  if (index_limit > 0 && index_limit <= INT32_MAX)
    return {fmt::format("static_cast<int>({})", raw)};
  return {raw, kPrimary, true};
}

std::string ToMemory(Type type, const CudaText& value) {
  const std::string_view name = NarrowFloatName(type);
  if (name.empty()) return value.text;
  return fmt::format("{}_to_{}({})", value.is_long ? "double" : "float", name, value.text);
}

void FindClusterVars(ir::Stmt stmt, std::set<int32_t>& vars) {
  if (stmt->kind == ir::StmtKind::kFor && stmt->loop_kind == ir::LoopKind::kCluster)
    vars.insert(stmt->var);
  for (ir::Stmt child : stmt->children()) FindClusterVars(child, vars);
}
}  // namespace

std::string Wrap(const CudaText& text, Precedence at_least) {
  return text.precedence >= at_least ? text.text : "(" + text.text + ")";
}

CudaExprs::CudaExprs(const ir::Program& program, const ir::Kernel& kernel,
                     const std::vector<std::string>& buffer_names, const Swizzles& swizzles,
                     CudaScope& scope, QuotientNames& quotients, CudaPreamble& preamble)
    : program_(program),
      buffer_names_(buffer_names),
      swizzles_(swizzles),
      scope_(scope),
      quotients_(quotients),
      preamble_(preamble) {
  FindClusterVars(kernel.body, cluster_vars_);
}

const std::string* CudaExprs::HeldBufferOrNull(int32_t slot) const {
  const auto found = held_buffers_.find(slot);
  return found == held_buffers_.end() ? nullptr : &found->second;
}

// Loads that are in registers stay what they are, to be found in held_loads_.
Expr CudaExprs::KeepHeld(Expr load) {
  if (held_loads_.contains(load)) return load;
  std::vector<Expr> indices;
  for (Expr index : load->args()) indices.push_back(Simplify(index));
  return scope_.pool().Load(load->id, indices, load->type);
}

Expr CudaExprs::Simplify(Expr e) {
  if (held_loads_.empty()) return scope_.simplifier().Simplify(e, &scope_.values());
  const auto keep = [this](Expr load) { return KeepHeld(load); };
  const arith::Simplifier::LoadFn load(keep);
  return scope_.simplifier().Simplify(e, &scope_.values(), &load);
}

Linear CudaExprs::ToLinear(Expr e) {
  if (held_loads_.empty()) return scope_.simplifier().ToLinear(e, &scope_.values());
  const auto keep = [this](Expr load) { return KeepHeld(load); };
  const arith::Simplifier::LoadFn load(keep);
  return scope_.simplifier().ToLinear(e, &scope_.values(), &load);
}

Expr CudaExprs::SimplifyCondition(Expr condition) {
  if (condition->op != Op::kAnd) return Simplify(condition);
  const Expr first = SimplifyCondition(condition->arg(0));
  if (first->is_const_int())
    return first->int_value != 0 ? SimplifyCondition(condition->arg(1)) : first;
  const arith::FactScope facts(scope_.simplifier(), first);
  const Expr second = SimplifyCondition(condition->arg(1));
  if (second->is_const_int()) return second->int_value != 0 ? first : second;
  return scope_.pool().And(first, second);
}

CudaText CudaExprs::Print(Expr e) {
  if (e->op == Op::kLoad) return PrintLoad(e);
  if (const auto found = held_loads_.find(e); found != held_loads_.end())
    return FromMemory(e->type, 0, found->second);
  if (e->type.is_bool() && e->op != Op::kCast) return PrintSimplified(Simplify(e));
  if (IsIndex(e) && e->op != Op::kCall)
    return PrintSimplified(scope_.simplifier().ToExpr(ToLinear(e)));
  if (e->op == Op::kCast && !e->type.is_bool()) {
    const Expr from = e->arg(0);
    if (from->type.is_bool()) return PrintSimplified(scope_.pool().Cast(e->type, Simplify(from)));
    if (IsIndex(from) && from->op != Op::kCall && from->op != Op::kLoad)
      return PrintSimplified(
          scope_.pool().Cast(e->type, scope_.simplifier().ToExpr(ToLinear(from))));
  }
  return PrintSimplified(e);
}

// Index arithmetic and conditions below a simplified node are simplified too.
CudaText CudaExprs::Child(Expr e) {
  const bool is_simplified = (IsIndex(e) || e->type.is_bool()) && e->op != Op::kLoad;
  return is_simplified ? PrintSimplified(e) : Print(e);
}

CudaText CudaExprs::PrintSimplified(Expr e) {
  if (--budget_ < 0) return {"0"};
  switch (e->op) {
    case Op::kInt:
    case Op::kFloat:
      return PrintConstant(e);
    case Op::kVar: {
      const Interval range = RangeOf(e);
      return {scope_.name(e->id), kPrimary, !FitsInt(range)};
    }
    case Op::kFloorDiv:
    case Op::kFloorMod:
      return IsIndex(e) ? PrintQuotient(e) : PrintDivision(e);
    case Op::kAnd:
    case Op::kOr:
    case Op::kNot:
      return PrintLogic(e);
    case Op::kSelect:
    case Op::kIf:
      return PrintChoice(e, &CudaExprs::Child);
    case Op::kCast:
      return PrintCast(e);
    case Op::kReinterpret:
      return PrintReinterpreted(e);
    case Op::kLoad:
      return PrintLoad(e);
    case Op::kCall:
      return PrintCall(e);
    default:
      return PrintBinary(e);
  }
}

CudaText CudaExprs::PrintConstant(Expr e) {
  if (e->type.is_bool()) return {e->int_value != 0 ? "true" : "false"};
  if (e->type == ir::kUInt32) return {fmt::format("{}u", e->int_value)};
  if (e->type == ir::kUInt64) return {fmt::format("{}ull", static_cast<uint64_t>(e->int_value))};
  const std::string text =
      e->op == Op::kInt ? IntText(e->int_value) : FloatText(e->float_value, e->type);
  const bool is_long =
      e->op == Op::kInt && IsIndex(e) && (e->int_value > INT32_MAX || e->int_value < INT32_MIN);
  return {text, text[0] == '-' ? kUnary : kPrimary, is_long};
}

CudaText CudaExprs::PrintBinary(Expr e) {
  const CudaText a = Child(e->arg(0)), b = Child(e->arg(1));
  if (e->op == Op::kMin || e->op == Op::kMax) return PrintMinMax(e, a, b);
  if (ir::IsComparison(e->op)) {
    const Precedence own = e->op == Op::kEq || e->op == Op::kNe ? kEquality : kRelation;
    return {fmt::format("{} {} {}", Wrap(a, kSum), ir::BinarySymbol(e->op), Wrap(b, kSum)), own};
  }
  if (IsIndex(e)) return PrintIndexBinary(e, a, b);
  if (ir::IsBits(e->op)) return Narrowed(e->type, PrintBits(e, a, b));
  const Precedence own = e->op == Op::kAdd || e->op == Op::kSub ? kSum : kProduct;
  // The product of two unsigned shorts may not fit an int.
  const std::string_view wide =
      e->op == Op::kMul && e->type == ir::kUInt16 ? "static_cast<unsigned int>(1) * " : "";
  const std::string text =
      fmt::format("{}{} {} {}", wide, Wrap(a, own), ir::BinarySymbol(e->op), Wrap(b, Tighter(own)));
  return Narrowed(e->type, {text, own});
}

// How tightly C's operators on bits bind is little known: brackets on both sides.
CudaText CudaExprs::PrintBits(Expr e, const CudaText& a, const CudaText& b) {
  return {fmt::format("{} {} {}", Wrap(a, kUnary), ir::BinarySymbol(e->op), Wrap(b, kUnary)), kOr,
          a.is_long || b.is_long};
}

CudaText CudaExprs::PrintIndexBinary(Expr e, CudaText a, CudaText b) {
  if (ir::IsBits(e->op)) {
    if (!a.is_long && !FitsInt(RangeOf(e))) a = {"(long long)" + Wrap(a, kUnary), kUnary, true};
    return PrintBits(e, a, b);
  }
  const bool is_long = a.is_long || b.is_long || !FitsInt(RangeOf(e));
  const Precedence own = e->op == Op::kMul ? kProduct : kSum;
  if (is_long && !a.is_long && !b.is_long) a = {"(long long)" + Wrap(a, kUnary), kUnary, true};
  return {fmt::format("{} {} {}", Wrap(a, own), ir::BinarySymbol(e->op), Wrap(b, Tighter(own))),
          own, is_long};
}

CudaText CudaExprs::PrintMinMax(Expr e, const CudaText& a, const CudaText& b) {
  const std::string_view name = e->op == Op::kMin ? "min" : "max";
  if (e->type.is_float()) {
    preamble_.UseExtremes(e->type);
    return {fmt::format("{}imum({}, {})", name, a.text, b.text)};
  }
  const bool is_long = IsIndex(e) && (a.is_long || b.is_long);
  const auto argument = [&](const CudaText& t) {
    return is_long && !t.is_long ? "(long long)" + Wrap(t, kUnary) : t.text;
  };
  return Narrowed(e->type,
                  {fmt::format("{}({}, {})", name, argument(a), argument(b)), kPrimary, is_long});
}

CudaText CudaExprs::PrintDivision(Expr e) {
  const CudaText a = Child(e->arg(0)), b = Child(e->arg(1));
  const bool is_div = e->op == Op::kFloorDiv;
  const bool is_long = IsIndex(e) && (a.is_long || b.is_long);
  if (IsIndex(e) && RangeOf(e->arg(0)).lo >= 0 && RangeOf(e->arg(1)).lo > 0) {
    return {fmt::format("{} {} {}", Wrap(a, kProduct), is_div ? "/" : "%", Wrap(b, kUnary)),
            kProduct, is_long};
  }
  if (e->type.is_unsigned()) {
    return Narrowed(
        e->type, {fmt::format("{} {} {}", Wrap(a, kProduct), is_div ? "/" : "%", Wrap(b, kUnary)),
                  kProduct});
  }
  (is_div ? preamble_.floor_div : preamble_.floor_mod) = true;
  const std::string call = fmt::format("{}<{}>({}, {})", is_div ? "floor_div" : "floor_mod",
                                       is_long ? "long long" : "int", a.text, b.text);
  return Narrowed(e->type, {call, kPrimary, is_long});
}

CudaText CudaExprs::PrintQuotient(Expr e) {
  if (const QuotientNames::Name* name = quotients_.NameOrNull(e))
    return {name->text, kPrimary, name->is_long};
  const CudaText text = PrintDivision(e);
  quotients_.Note(e);  // after those in it
  return text;
}

CudaText CudaExprs::PrintLogic(Expr e) {
  if (e->op == Op::kNot) return {"!" + Wrap(Child(e->arg(0)), kUnary), kUnary};
  if (evaluates_whole_) {
    const CudaText a = Child(e->arg(0)), b = Child(e->arg(1));
    return {
        fmt::format("{} {} {}", Wrap(a, kUnary), e->op == Op::kAnd ? '&' : '|', Wrap(b, kUnary)),
        kOr};
  }
  const Precedence own = e->op == Op::kAnd ? kAnd : kOr;
  // && inside || gets parentheses, as compilers like it.
  const auto operand = [&](Expr arg) {
    const CudaText text = Child(arg);
    return Wrap(text, text.precedence == own ? own : kEquality);
  };
  const std::string a = operand(e->arg(0));
  return {fmt::format("{} {} {}", a, ir::BinarySymbol(e->op), operand(e->arg(1))), own};
}

CudaText CudaExprs::PrintCondition(Expr choice, Expr condition) {
  bool is_whole = false;
  if ((condition->op == Op::kAnd || condition->op == Op::kOr) && ComparesFloats(condition)) {
    // A kSelect evaluates both sides; a kIf may evaluate none.
    std::vector<Expr> sides;
    if (choice->op == Op::kSelect) sides = {Simplify(choice->arg(1)), Simplify(choice->arg(2))};
    is_whole = IsEvaluatedWhole(condition, sides);
  }
  const bool outer = std::exchange(evaluates_whole_, is_whole);
  CudaText text = PrintSimplified(condition);
  evaluates_whole_ = outer;
  return text;
}

CudaText CudaExprs::PrintChoice(Expr e, PrintFn print_side) {
  if (const Expr extreme = ExtremeOfValueChoice(e, scope_.pool()); extreme != nullptr)
    return Print(extreme);
  const Expr short_choice = ShortIndexChoice(e, scope_.pool());
  const Expr condition = SimplifyCondition(short_choice != nullptr ? short_choice : e->arg(0));
  if (condition->is_const_int())
    return (this->*print_side)(e->arg(condition->int_value != 0 ? 1 : 2));
  const CudaText c = PrintCondition(e, condition), b = (this->*print_side)(e->arg(2));
  std::optional<arith::FactScope> facts;
  if (e->op == Op::kIf) facts.emplace(scope_.simplifier(), condition);
  const CudaText a = (this->*print_side)(e->arg(1));
  const bool is_long = a.is_long || b.is_long;
  return {fmt::format("{} ? {} : {}", Wrap(c, kOr), Wrap(a, kOr), Wrap(b, kOr)), kTernary, is_long};
}

// Are all values of the integer numbers of the short float, so that no conversion rounds?
bool CudaExprs::IsExactIn(Type to, Expr integer) {
  if ((to != ir::kFloat16 && to != ir::kBFloat16) || !integer->type.is_int()) return false;
  const int64_t most = to == ir::kFloat16 ? 2048 : 256;
  const Interval range = RangeOf(integer);
  return range.lo >= -most && range.hi <= most;
}

// A value of another type as a short float in memory.
std::string CudaExprs::PrintShort(Type to, Type from, CudaText value) {
  preamble_.Use(to);
  value.is_long |= from == ir::kFloat64 || from == ir::kUInt64;
  return ToMemory(to, value);
}

CudaText CudaExprs::PrintCast(Expr e) {
  const Type from = e->arg(0)->type, to = e->type;
  const CudaText a = Child(e->arg(0));
  if (from == to) return a;
  if (to.is_bool()) return {fmt::format("{} != 0", Wrap(a, kSum)), kEquality};
  const bool is_exact = IsExactIn(to, e->arg(0));
  if (e->arg(0)->op == Op::kLoad && from.bits == 8 && (to == ir::kFloat32 || is_exact)) {
    if (const std::optional<CudaText> converted = ConvertedByte(from, a)) return *converted;
  }
  if (is_exact) return {fmt::format("static_cast<float>({})", a.text), kPrimary};
  if (to.is_short_float()) return FromMemory(to, 0, PrintShort(to, from, a));
  if (to == ir::kFloat32 && from.is_short_float()) return a;
  if (to == ir::kIndex && (from.is_int() || from.is_bool())) {
    // Beside an unsigned int, C computes with unsigned ints.
    if (from == ir::kUInt32) {
      const bool fits = FitsInt(RangeOf(e->arg(0)));
      return {fmt::format("static_cast<{}>({})", fits ? "int" : "long long", a.text), kPrimary,
              !fits};
    }
    if (from == ir::kUInt64)
      return {fmt::format("static_cast<long long>({})", a.text), kPrimary, true};
    if (from.is_int()) return a;
    return {fmt::format("static_cast<int>({})", a.text)};
  }
  if (to == ir::kInt32 && from == ir::kIndex && !a.is_long) return a;
  if (to.is_int() && from.is_float()) {
    preamble_.UseToInt(from);
    return {ConvertedToInt(to, a.text), kPrimary, to == ir::kIndex};
  }
  return {fmt::format("static_cast<{}>({})", CudaTypeName(to), a.text), kPrimary, to == ir::kIndex};
}

// Short floats are structs of their bits in memory.
CudaText CudaExprs::PrintReinterpreted(Expr e) {
  const Type from = e->arg(0)->type, to = e->type;
  std::string bits;
  if (from.is_short_float()) {
    preamble_.Use(from);
    bits = Wrap(PrintRaw(e->arg(0)), kPrimary) + ".bits";
  } else {
    const std::string value = Child(e->arg(0)).text;
    bits = from == ir::kFloat32   ? fmt::format("__float_as_uint({})", value)
           : from == ir::kFloat64 ? fmt::format("__double_as_longlong({})", value)
                                  : value;
  }
  if (to == ir::kFloat32) return {fmt::format("__uint_as_float({})", bits)};
  if (to == ir::kFloat64) return {fmt::format("__longlong_as_double({})", bits)};
  if (!to.is_short_float()) {
    return {fmt::format("static_cast<{}>({})", CudaTypeName(to), bits), kPrimary, to == ir::kIndex};
  }
  preamble_.Use(to);
  const std::string_view word = to.bits == 16 ? "unsigned short" : "unsigned char";
  return FromMemory(to, 0, fmt::format("{}{{static_cast<{}>({})}}", CudaTypeName(to), word, bits));
}

CudaText CudaExprs::PrintCall(Expr e) {
  std::string args;
  for (Expr arg : e->args()) args += (args.empty() ? "" : ", ") + Child(arg).text;
  const bool is_double = e->type == ir::kFloat64;
  const std::string suffix = is_double ? "" : "f";
  switch (e->intrinsic()) {
    case ir::Intrinsic::kSigmoid:
      preamble_.sigmoid = true;
      return {fmt::format("sigmoid({})", args)};
    case ir::Intrinsic::kAbs:
      if (e->type == ir::kInt64) return {fmt::format("llabs({})", args), kPrimary, true};
      if (e->type.is_int()) return Narrowed(e->type, {fmt::format("abs({})", args)});
      return {fmt::format("fabs{}({})", suffix, args)};
    case ir::Intrinsic::kExp2:
      if (!flushes_powers_ || is_double) return {fmt::format("exp2{}({})", suffix, args)};
      preamble_.flushed_powers = true;
      return {fmt::format("flushed_exp2({})", args)};
    case ir::Intrinsic::kRound:
      return {fmt::format("rint{}({})", suffix, args)};
    default:
      return {fmt::format("{}{}({})", ir::IntrinsicName(e->intrinsic()), suffix, args)};
  }
}

CudaText CudaExprs::PrintLoad(Expr e) {
  const auto found = held_loads_.find(e);
  return FromMemory(
      e->type, buffer(e->id).index_limit,
      found != held_loads_.end() ? found->second : Element(e->id, PlaceOf(e->id, e->args())));
}

CudaText CudaExprs::PrintRaw(Expr e) {
  if (!e->type.is_short_float()) return Print(e);
  // What is only moved is not converted.
  if (const auto found = held_loads_.find(e); found != held_loads_.end()) return {found->second};
  if (e->op == Op::kLoad) return {Element(e->id, PlaceOf(e->id, e->args()))};
  if (e->op == Op::kIf || e->op == Op::kSelect) return PrintChoice(e, &CudaExprs::PrintRaw);
  // Rounded once.
  if (e->op == Op::kCast && e->arg(0)->type.is_float())
    return {PrintShort(e->type, e->arg(0)->type, Child(e->arg(0)))};
  return {ToMemory(e->type, Print(e))};
}

Linear CudaExprs::IndexOf(Expr index) {
  return ToLinear(IsIndex(index) ? index : scope_.pool().Cast(ir::kIndex, index));
}

Place CudaExprs::PlaceOf(int32_t slot, std::span<const Expr> indices) {
  std::vector<Linear> linear;
  linear.reserve(indices.size());
  for (Expr index : indices) linear.push_back(IndexOf(index));
  return PlaceIn(scope_.simplifier(), buffer(slot), SwizzleOrNull(slot), std::move(linear));
}

std::string CudaExprs::Element(int32_t slot, const Place& place) {
  if (const std::string* held = HeldBufferOrNull(slot)) return *held;
  if (const Swizzle* swizzle = SwizzleOrNull(slot); swizzle != nullptr && swizzle->mask() != 0)
    return fmt::format("{}[{}]", buffer_name(slot), Permuted(*swizzle, place.offset));
  return LineElement(slot, place);
}

// Whole periods are added behind, and which of the neighbours of a piece it is, neither of which the
// compiler can know: elements that are so far apart, or so near, have one permutation.
std::string CudaExprs::Permuted(const Swizzle& swizzle, const Linear& offset) {
  auto [periods, rest] = InPeriods(swizzle, offset);
  int64_t near = swizzle.mask() & -swizzle.mask();  // elements of a piece
  for (const arith::Term& term : rest.terms) near = std::gcd(near, term.coefficient);
  const int64_t in_piece = ir::FloorMod(rest.constant, near);
  rest.constant -= in_piece;
  periods.constant += in_piece;
  if (rest.is_constant()) {
    const int64_t permuted = rest.constant ^ (rest.constant >> 3 & swizzle.mask());
    return PrintSimplified(scope_.simplifier().ToExpr(periods + arith::Constant(permuted))).text;
  }
  preamble_.swizzle = true;
  const std::string permuted = fmt::format("swizzled<{}>({})", swizzle.mask(),
                                           PrintSimplified(scope_.simplifier().ToExpr(rest)).text);
  if (periods == Linear()) return permuted;
  return fmt::format("{} + {}", permuted,
                     Wrap(PrintSimplified(scope_.simplifier().ToExpr(periods)), kSum));
}

std::string CudaExprs::LineElement(int32_t slot, const Place& place) {
  const std::string& name = buffer_name(slot);
  const std::string offset = PrintSimplified(scope_.simplifier().ToExpr(place.offset)).text;
  if (!place.block) return fmt::format("{}[{}]", name, offset);
  const Expr block = scope_.simplifier().ToExpr(*place.block);
  if (block->op == Op::kVar && cluster_vars_.contains(block->id))
    return fmt::format("{}[{}]", name, offset);
  preamble_.cluster = true;
  return fmt::format("in_block({}, {})[{}]", name, PrintSimplified(block).text, offset);
}

// Of an expression of the simplifier. Loads of indices are known to lie in their limit.
Interval CudaExprs::RangeOf(Expr e) {
  if (e->op == Op::kVar) return scope_.simplifier().RangeOf(e);
  if (e->op == Op::kLoad && buffer(e->id).index_limit > 0)
    return Interval::Of(0, buffer(e->id).index_limit - 1);
  return arith::RangeOfNode(e, [this](Expr operand) { return RangeOf(operand); });
}

}  // namespace kiln::codegen
