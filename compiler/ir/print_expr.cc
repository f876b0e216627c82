#include <charconv>
#include <cmath>

#include "compiler/ir/infix.h"
#include "compiler/ir/scalar.h"
#include "compiler/ir/text.h"

namespace kiln::ir {
namespace {

// Precedence levels above those of infix operators. Calls, loads and literals are kAtom.
constexpr int kUnaryLevel = kProductLevel + 1, kAtom = kUnaryLevel + 1;

// True for x ^ -1, which is ~x.
bool IsComplement(Expr e) {
  return e->op == Op::kBitXor && e->type.is_int() &&
         e->arg(1)->is_const_int(WrapToType(-1, e->type));
}

int PrecedenceOf(Expr e) {
  if (IsComplement(e)) return kUnaryLevel;
  if (e->op == Op::kNot) return kUnaryLevel;
  const Infix* infix = FindInfix(e->op);
  return infix != nullptr ? infix->level : kAtom;
}

// Returns true if a parser finds the type without being told. False for expressions of number
// literals only.
bool HasImpliedType(Expr e) {
  switch (e->op) {
    case Op::kInt:
      return e->type.is_bool();
    case Op::kFloat:
      return false;
    case Op::kVar:
    case Op::kLoad:
    case Op::kCast:
    case Op::kReinterpret:
      return true;
    case Op::kSelect:
    case Op::kIf:
      return HasImpliedType(e->arg(1)) || HasImpliedType(e->arg(2));
    default:
      break;
  }
  if (e->type.is_bool()) return true;
  for (Expr a : e->args()) {
    if (HasImpliedType(a)) return true;
  }
  return false;
}

bool ReadsBack(std::string_view text, double value, Type type) {
  double parsed;
  std::from_chars(text.data(), text.data() + text.size(), parsed);
  return RoundToType(parsed, type) == value;
}

std::string Digits(double value, Type type) {
  const bool is_small_integer = value == std::trunc(value) && std::abs(value) < 1e6;
  if (type.is_short_float() && !is_small_integer) {
    for (int digits = 1; digits < 6; ++digits) {
      std::string text = fmt::format("{:.{}g}", value, digits);
      if (ReadsBack(text, value, type)) return text;
    }
  }
  if (type == kFloat32) {
    std::string text = fmt::format("{}", static_cast<float>(value));
    if (ReadsBack(text, value, type)) return text;
  }
  return fmt::format("{}", value);
}

class Printer {
 public:
  Printer(std::string& out, const ExprNames& names) : out_(out), names_(names) {}

  void Print(Expr e, std::optional<Type> context) {
    switch (e->op) {
      case Op::kInt:
      case Op::kFloat:
        return PrintLiteral(e, context);
      case Op::kVar:
        out_ += names_.var ? NameText(names_.var(e->id)) : fmt::format("v{}", e->id);
        return;
      case Op::kLoad:
        return PrintLoad(e);
      case Op::kNot:
        out_ += '!';
        return PrintOperand(e->arg(0), kUnaryLevel, kBool);
      case Op::kCast:
      case Op::kReinterpret:
        out_ += TypeName(e->type);
        out_ += e->op == Op::kCast ? "(" : ".bits(";
        Print(e->arg(0), {});
        out_ += ')';
        return;
      case Op::kSelect:
      case Op::kIf:
        out_ += e->op == Op::kIf ? "if(" : "select(";
        Print(e->arg(0), kBool);
        out_ += ", ";
        return PrintArgs(e->args().subspan(1), context);
      case Op::kCall:
        out_ += IntrinsicName(e->intrinsic());
        out_ += '(';
        return PrintArgs(e->args(), context);
      case Op::kMin:
      case Op::kMax:
        out_ += BinarySymbol(e->op);
        out_ += '(';
        return PrintArgs(e->args(), context);
      case Op::kBitXor:
        if (!IsComplement(e)) return PrintInfix(e, context);
        out_ += '~';
        return PrintOperand(e->arg(0), kUnaryLevel, SharedContext(e->args(), context));
      default:
        return PrintInfix(e, context);
    }
  }

 private:
  // Returns the common type of the operands if `context` or one of the operands tells it to a
  // parser. Else the first operand must be printed with its type.
  static std::optional<Type> SharedContext(std::span<const Expr> args,
                                           std::optional<Type> context) {
    const Type type = args[0]->type;
    if (context == type) return type;
    for (Expr a : args) {
      if (HasImpliedType(a)) return type;
    }
    return {};
  }

  void PrintArgs(std::span<const Expr> args, std::optional<Type> context) {
    std::optional<Type> shared = SharedContext(args, context);
    for (size_t i = 0; i < args.size(); ++i) {
      if (i > 0) out_ += ", ";
      Print(args[i], shared);
      shared = args[0]->type;
    }
    out_ += ')';
  }

  void PrintInfix(Expr e, std::optional<Type> context) {
    if (IsComparison(e->op)) context = {};
    const int level = PrecedenceOf(e);
    const std::optional<Type> shared = SharedContext(e->args(), context);
    const bool apart = level == kCompareLevel || NeedsParentheses(e->op, e->arg(0)->op);
    const int apart_level = IsBits(e->op) ? kUnaryLevel : level + 1;
    PrintOperand(e->arg(0), apart ? apart_level : level, shared);
    AppendSymbol(e->op);
    // The right operand is bracketed as well, as in a & (b == c), a | (b & c), a << (b + c).
    const bool right_apart = IsBits(e->op) && FindInfix(e->arg(1)->op) != nullptr;
    PrintOperand(e->arg(1), right_apart ? kUnaryLevel : level + 1, e->arg(0)->type);
  }

  void AppendSymbol(Op op) {
    // Products are printed without spaces, as in a*b + c.
    const bool is_close = op == Op::kMul;
    if (!is_close) out_ += ' ';
    out_ += BinarySymbol(op);
    if (!is_close) out_ += ' ';
  }

  // A parser takes "a // 2*16" for (a // 2)*16, and a reader takes it for a // (2*16). Brackets
  // therefore separate // and % from other products. They also separate different operators on
  // bits, and operators whose relative levels are little known.
  static bool NeedsParentheses(Op op, Op left) {
    if (IsBits(op)) return op != left;
    auto rounds = [](Op o) { return o == Op::kFloorDiv || o == Op::kFloorMod; };
    return op != left && IsProduct(op) && IsProduct(left) && (rounds(op) || rounds(left));
  }
  static bool IsProduct(Op op) {
    return op == Op::kMul || op == Op::kDiv || op == Op::kFloorDiv || op == Op::kFloorMod;
  }

  void PrintOperand(Expr e, int lowest, std::optional<Type> context) {
    if (PrecedenceOf(e) >= lowest) return Print(e, context);
    out_ += '(';
    Print(e, context);
    out_ += ')';
  }

  void PrintLoad(Expr e) {
    out_ += names_.slot ? NameText(names_.slot(e->id)) : fmt::format("b{}", e->id);
    out_ += '[';
    for (int i = 0; i < e->num_args; ++i) {
      if (i > 0) out_ += ", ";
      Print(e->arg(i), kIndex);
    }
    out_ += ']';
  }

  void PrintLiteral(Expr e, std::optional<Type> context) {
    if (e->type.is_bool()) {
      out_ += e->int_value ? "true" : "false";
      return;
    }
    const Type usual = e->op == Op::kInt ? kIndex : kFloat32;
    const bool is_plain = e->type == context || (!context && e->type == usual);
    if (!is_plain) {
      out_ += TypeName(e->type);
      out_ += '(';
    }
    if (e->type == kUInt64) {
      fmt::format_to(std::back_inserter(out_), "{}", static_cast<uint64_t>(e->int_value));
    } else if (e->op == Op::kInt) {
      fmt::format_to(std::back_inserter(out_), "{}", e->int_value);
    } else {
      out_ += FloatText(e->float_value, e->type);
    }
    if (!is_plain) out_ += ')';
  }

  std::string& out_;
  const ExprNames& names_;
};

}  // namespace

std::string FloatText(double value, Type type) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = Digits(value, type);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

void AppendExpr(std::string& out, Expr e, const ExprNames& names, std::optional<Type> context) {
  Printer(out, names).Print(e, context);
}

std::string ExprText(Expr e, const ExprNames& names, std::optional<Type> context) {
  std::string out;
  AppendExpr(out, e, names, context);
  return out;
}

}  // namespace kiln::ir
