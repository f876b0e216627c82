#include "compiler/schedule/tvm/expression.h"

#include <cctype>
#include <cmath>
#include <unordered_map>

#include "compiler/ir/infix.h"

namespace kiln::schedule {
namespace {

using ir::Expr;
using ir::Op;

constexpr int kAtomLevel = ir::kProductLevel + 1;

std::string NumberText(double value) {
  if (std::isnan(value)) return "float(\"nan\")";
  if (std::isinf(value)) return value < 0 ? "float(\"-inf\")" : "float(\"inf\")";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// Walks an expression as a tree. Bodies are bounded (dag/limits.h).
class Printer {
 public:
  Printer(const PythonNames& names, bool numpy) : names_(names), numpy_(numpy) {}

  // A body of index arithmetic alone has the type of TVM's variables, so an int64 needs a cast.
  std::string Body(Expr e) {
    if (numpy_) return Print(e, 0);
    if (e->op == Op::kInt) return Literal(e, /*is_index=*/false);
    const bool is_index = !HasValue(e);
    std::string text = Print(e, 0, is_index);
    if (is_index && e->type == ir::kIndex) return fmt::format("tir.Cast(\"int64\", {})", text);
    return text;
  }

 private:
  // Returns true if the expression is more than index arithmetic.
  bool HasValue(Expr e) {
    if (e->op == Op::kLoad || (e->op == Op::kVar && names_.vars_are_values)) return true;
    const auto known = has_value_.find(e);
    if (known != has_value_.end()) return known->second;
    bool has = false;
    for (Expr arg : e->args()) has = has || HasValue(arg);
    has_value_[e] = has;
    return has;
  }

  // `level` is that of the operator around the expression. `is_index` prints integers without a
  // type.
  std::string Print(Expr e, int level, bool is_index = false) {
    switch (e->op) {
      case Op::kInt:
      case Op::kFloat:
        return Literal(e, is_index);
      case Op::kVar:
        return names_.var(e->id);
      case Op::kLoad:
        return Load(e);
      case Op::kNot:
        return Call(numpy_ ? "np.logical_not" : "tir.Not", e, is_index);
      case Op::kAnd:
        return Call(numpy_ ? "np.logical_and" : "tir.all", e, is_index);
      case Op::kOr:
        return Call(numpy_ ? "np.logical_or" : "tir.any", e, is_index);
      case Op::kMin:
        return Call(numpy_ ? "np.minimum" : "te.min", e, is_index);
      case Op::kMax:
        return Call(numpy_ ? "np.maximum" : "te.max", e, is_index);
      case Op::kEq:
      case Op::kNe:
        if (!numpy_) return Call(e->op == Op::kEq ? "tir.EQ" : "tir.NE", e, !HasValue(e));
        return Infix(e, level, !HasValue(e));
      case Op::kLt:
      case Op::kLe:
      case Op::kGt:
      case Op::kGe:
        return Infix(e, level, !HasValue(e));
      case Op::kSelect:
      case Op::kIf:
        return Choice(e, is_index);
      case Op::kCast:
        return Cast(e);
      case Op::kReinterpret:
        return Reinterpret(e);
      case Op::kCall:
        return Call(Function(e->intrinsic()), e, is_index);
      default:
        return Infix(e, level, is_index);
    }
  }

  std::string Arg(Expr e, int i, bool is_index) { return Print(e->arg(i), 0, is_index); }

  std::string Call(std::string_view function, Expr e, bool is_index) {
    std::string args;
    for (int i = 0; i < e->num_args; ++i) {
      if (i > 0) args += ", ";
      args += Arg(e, i, is_index);
    }
    return fmt::format("{}({})", function, args);
  }

  static constexpr int kTightest = ir::kProductLevel + 1;

  // Python's levels are C's, except that comparisons chain in Python.
  std::string Infix(Expr e, int level, bool is_index) {
    const ir::Infix* infix = ir::FindInfix(e->op);
    KILN_CHECK(infix != nullptr, "no operator of Python: {}", static_cast<int>(e->op));
    // Python's levels of these operators are not C's.
    if (ir::IsBits(e->op)) {
      const std::string bits = fmt::format("{} {} {}", Print(e->arg(0), kTightest, is_index),
                                           infix->symbol, Print(e->arg(1), kTightest, is_index));
      return level > 0 ? fmt::format("({})", bits) : bits;
    }
    const bool compares = infix->level == ir::kCompareLevel;
    const std::string left = Print(e->arg(0), compares ? infix->level + 1 : infix->level, is_index);
    const std::string right = Print(e->arg(1), infix->level + 1, is_index);
    const std::string text = fmt::format("{} {} {}", left, infix->symbol, right);
    return infix->level < level ? fmt::format("({})", text) : text;
  }

  std::string Choice(Expr e, bool is_index) {
    const std::string condition = Print(e->arg(0), 0, !HasValue(e->arg(0)));
    const bool guards = e->op == Op::kIf;
    guarded_ += guards;
    const std::string yes = Arg(e, 1, is_index), no = Arg(e, 2, is_index);
    guarded_ -= guards;
    const std::string_view function = numpy_   ? "np.where"
                                      : guards ? "tir.if_then_else"
                                               : "tir.Select";
    return fmt::format("{}({}, {}, {})", function, condition, yes, no);
  }

  std::string Cast(Expr e) {
    const std::string arg = Arg(e, 0, !HasValue(e->arg(0)));
    const std::string_view type = ir::TypeName(e->type);
    if (numpy_) return fmt::format("np.asarray({}).astype(\"{}\")", arg, type);
    return fmt::format("tir.Cast(\"{}\", {})", type, arg);
  }

  std::string Reinterpret(Expr e) {
    const Expr from = e->arg(0);
    const std::string arg = Arg(e, 0, /*is_index=*/false);
    const std::string_view type = ir::TypeName(e->type);
    if (!numpy_) return fmt::format("tir.reinterpret(\"{}\", {})", type, arg);
    return fmt::format("np.asarray({}).astype(\"{}\").view(\"{}\")", arg, ir::TypeName(from->type),
                       type);
  }

  std::string Load(Expr e) {
    std::string indices;
    for (int i = 0; i < e->num_args; ++i) {
      if (i > 0) indices += ", ";
      indices += Print(e->arg(i), 0, /*is_index=*/true);
    }
    const std::string tensor = names_.tensor(e->id);
    if (numpy_ && guarded_ > 0 && e->num_args > 0)
      return fmt::format("at({}, {})", tensor, indices);
    return fmt::format("{}[{}]", tensor, e->num_args > 0 ? indices : "()");
  }

  std::string Literal(Expr e, bool is_index) {
    const std::string_view type = ir::TypeName(e->type);
    if (e->type.is_bool()) {
      if (numpy_) return e->int_value != 0 ? "True" : "False";
      return fmt::format("tir.const({}, \"bool\")", e->int_value);
    }
    if (e->op == Op::kInt) {
      const std::string value = e->type == ir::kUInt64
                                    ? fmt::format("{}", static_cast<uint64_t>(e->int_value))
                                    : fmt::format("{}", e->int_value);
      if (numpy_ || is_index) return value;
      return fmt::format("tir.const({}, \"{}\")", value, type);
    }
    const std::string value = NumberText(e->float_value);
    if (numpy_) return fmt::format("np.{}({})", type, value);
    return fmt::format("tir.const({}, \"{}\")", value, type);
  }

  std::string Function(ir::Intrinsic intrinsic) const {
    switch (intrinsic) {
      case ir::Intrinsic::kRsqrt:
        return numpy_ ? "rsqrt" : "te.rsqrt";
      case ir::Intrinsic::kSigmoid:
        return numpy_ ? "sigmoid" : "te.sigmoid";
      case ir::Intrinsic::kErf:
        return numpy_ ? "erf" : "te.erf";
      case ir::Intrinsic::kPow:
        return numpy_ ? "np.power" : "te.power";
      // Rounds half to even.
      case ir::Intrinsic::kRound:
        return numpy_ ? "np.rint" : "tir.nearbyint";
      case ir::Intrinsic::kExp2:
        return numpy_ ? "np.exp2" : "tir.exp2";
      default:
        return fmt::format("{}.{}", numpy_ ? "np" : "te", ir::IntrinsicName(intrinsic));
    }
  }

  const PythonNames& names_;
  const bool numpy_;
  // Number of guarded sides of conditions around the current expression.
  int guarded_ = 0;
  std::unordered_map<Expr, bool> has_value_;
};

}  // namespace

std::string TvmExpression(Expr e, const PythonNames& names) {
  return Printer(names, /*numpy=*/false).Body(e);
}

std::string NumpyExpression(Expr e, const PythonNames& names) {
  return Printer(names, /*numpy=*/true).Body(e);
}

std::string PythonName(std::string_view name) {
  std::string result;
  for (char c : name) result += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0])))
    result.insert(result.begin(), '_');
  return result;
}

std::string PythonText(std::string_view text) {
  std::string literal = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      literal += '\\';
      literal += c;
    } else if (c >= ' ' && c < 0x7f) {
      literal += c;
    } else {
      literal += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return literal + "\"";
}

}  // namespace kiln::schedule
