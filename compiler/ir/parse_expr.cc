// Two passes. The grammar makes a small tree in which literals have no type yet and all other nodes
// know theirs. Then types go down to the literals, and the nodes are made.
#include <cmath>
#include <limits>

#include "compiler/ir/infix.h"
#include "compiler/ir/scalar.h"
#include "compiler/ir/text.h"

namespace kiln::ir {
namespace {

// kAllOnes is the integer whose bits are all set. It takes the type of the other operand.
enum class Form : uint8_t { kNode, kIntLiteral, kFloatLiteral, kAllOnes, kOp, kLoad };

struct Syntax {
  Form form = Form::kNode;
  // Used by kOp.
  Op op = Op::kInt;
  // Used by kIntLiteral.
  bool is_negative = false;
  // The expression has no type yet, and has a float literal or a '/' in it.
  bool wants_float = false;
  // Unset if there are only literals.
  std::optional<Type> type = std::nullopt;
  int height = 1;
  // Number of an intrinsic or a slot.
  int32_t id = 0;
  // Used by kIntLiteral.
  uint64_t magnitude = 0;
  // Used by kFloatLiteral.
  double number = 0;
  // Used by kNode.
  Expr node = nullptr;
  const Token* token = nullptr;
  std::vector<int> args = {};

  bool is_literal() const { return form == Form::kIntLiteral || form == Form::kFloatLiteral; }
};

const Infix* InfixOf(const Token& token) {
  return token.kind == TokenKind::kSymbol ? FindInfix(token.text) : nullptr;
}

class Parser {
 public:
  Parser(TokenStream& tokens, const ExprScope& scope, ExprPool& pool)
      : tokens_(tokens), scope_(scope), pool_(pool) {}

  StatusOr<Expr> Parse(std::optional<Type> context) {
    KILN_ASSIGN_OR_RETURN(const int root, ParseExpression());
    return Build(root, context ? *context : UsualType(root));
  }

  StatusOr<Expr> ParseIndex() {
    KILN_ASSIGN_OR_RETURN(const int root, ParseExpression());
    return BuildIndex(root);
  }

 private:
  Syntax& At(int i) { return syntax_[static_cast<size_t>(i)]; }

  // ---- grammar

  StatusOr<int> Add(Syntax syntax) {
    for (int a : syntax.args) syntax.height = std::max(syntax.height, At(a).height + 1);
    if (syntax.height > kMaxExprDepth) return TooDeep(*syntax.token);
    syntax_.push_back(std::move(syntax));
    return static_cast<int>(syntax_.size()) - 1;
  }

  static Status TooDeep(const Token& token) {
    return TokenStream::ErrorAt(
        token, fmt::format("the expression nests deeper than {} operations or {} brackets",
                           kMaxExprDepth, kMaxExprNesting / 2));
  }

  // Parses `c ? a : b`, which binds loosest and to the right, or an expression without it.
  StatusOr<int> ParseExpression() {
    KILN_ASSIGN_OR_RETURN(const int condition, ParseInfix(kOrLevel));
    if (!tokens_.Peek().is_symbol("?")) return condition;
    const Token& token = tokens_.Next();
    KILN_RETURN_IF_ERROR(CheckBool(condition, "the condition"));
    if (depth_ >= kMaxExprNesting) return TooDeep(token);
    ++depth_;
    KILN_ASSIGN_OR_RETURN(const int yes, ParseExpression());
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(":", "and the value if not"));
    KILN_ASSIGN_OR_RETURN(const int no, ParseExpression());
    --depth_;
    return MakeOperands(Op::kIf, token, {condition, yes, no}, 1);
  }

  // Precedence climbing. Comparisons do not chain.
  StatusOr<int> ParseInfix(int lowest) {
    if (depth_ >= kMaxExprNesting) return TooDeep(tokens_.Peek());
    ++depth_;
    KILN_ASSIGN_OR_RETURN(int left, ParseUnary());
    bool compared = false;
    while (const Infix* infix = InfixOf(tokens_.Peek())) {
      if (infix->level < lowest) break;
      if (infix->level == kCompareLevel && compared) {
        return TokenStream::ErrorAt(tokens_.Peek(),
                                    "comparisons do not chain: use parentheses or '&&'");
      }
      compared = infix->level == kCompareLevel;
      const Token& token = tokens_.Next();
      KILN_ASSIGN_OR_RETURN(const int right, ParseInfix(infix->level + 1));
      KILN_ASSIGN_OR_RETURN(left, MakeBinary(infix->op, token, left, right));
    }
    --depth_;
    return left;
  }

  StatusOr<int> ParseUnary() {
    const Token& token = tokens_.Peek();
    if (!token.is_symbol("-") && !token.is_symbol("!") && !token.is_symbol("~")) return ParseAtom();
    tokens_.Next();
    const Token& operand_token = tokens_.Peek();
    const bool is_number = operand_token.kind == TokenKind::kInt ||
                           operand_token.kind == TokenKind::kFloat ||
                           operand_token.is_word("inf") || operand_token.is_word("nan");
    if (depth_ >= kMaxExprNesting) return TooDeep(token);
    ++depth_;
    KILN_ASSIGN_OR_RETURN(const int operand, ParseUnary());
    --depth_;
    if (token.text == "!") {
      KILN_RETURN_IF_ERROR(CheckBool(operand, "'!'"));
      return Add(
          {.form = Form::kOp, .op = Op::kNot, .type = kBool, .token = &token, .args = {operand}});
    }
    if (token.text == "~") {
      if (At(operand).type == kBool)
        return TokenStream::ErrorAt(token, "'~' is for integers, use '!' for a bool");
      KILN_ASSIGN_OR_RETURN(const int ones, Add({.form = Form::kAllOnes, .token = &token}));
      return MakeBinary(Op::kBitXor, token, operand, ones);
    }
    if (is_number && At(operand).is_literal()) {
      At(operand).is_negative = true;
      At(operand).number = -At(operand).number;
      return operand;
    }
    KILN_ASSIGN_OR_RETURN(const int zero, Add({.form = Form::kIntLiteral, .token = &token}));
    return MakeBinary(Op::kSub, token, zero, operand);
  }

  StatusOr<int> ParseAtom() {
    const Token& token = tokens_.Peek();
    if (token.kind == TokenKind::kInt) {
      tokens_.Next();
      KILN_ASSIGN_OR_RETURN(const uint64_t magnitude, IntTokenValue(token));
      return Add({.form = Form::kIntLiteral, .magnitude = magnitude, .token = &token});
    }
    if (token.kind == TokenKind::kFloat) {
      tokens_.Next();
      KILN_ASSIGN_OR_RETURN(const double number, FloatTokenValue(token));
      return AddFloat(number, token);
    }
    if (token.kind == TokenKind::kName) return ParseNamed();
    if (!tokens_.TakeSymbol("(")) return tokens_.Expected("an expression");
    KILN_ASSIGN_OR_RETURN(const int inner, ParseExpression());
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(")", "after the expression"));
    return inner;
  }

  StatusOr<int> AddFloat(double number, const Token& token) {
    return Add(
        {.form = Form::kFloatLiteral, .wants_float = true, .number = number, .token = &token});
  }

  StatusOr<int> ParseNamed() {
    const Token& token = tokens_.Next();
    if (tokens_.TakeSymbol("[")) return ParseLoad(token);
    if (!token.is_quoted && tokens_.Peek().is_symbol("(")) {
      if (scope_.reduction) {
        KILN_ASSIGN_OR_RETURN(const Expr reduced, scope_.reduction(token, tokens_));
        if (reduced != nullptr) return AddNode(reduced, token);
      }
      tokens_.Next();
      return ParseCall(token);
    }
    if (token.is_word("true") || token.is_word("false")) {
      return AddNode(pool_.Bool(token.text == "true"), token);
    }
    if (token.is_word("inf")) return AddFloat(std::numeric_limits<double>::infinity(), token);
    if (token.is_word("nan")) return AddFloat(std::numeric_limits<double>::quiet_NaN(), token);
    if (const Expr var = scope_.var ? scope_.var(token.text) : nullptr) return AddNode(var, token);
    if (scope_.slot && scope_.slot(token.text)) {
      return TokenStream::ErrorAt(
          token, fmt::format("'{}' is a tensor: write its indices in []", token.text));
    }
    return TokenStream::ErrorAt(token, fmt::format("unknown variable '{}'", token.text));
  }

  StatusOr<int> AddNode(Expr node, const Token& token) {
    return Add({.form = Form::kNode, .type = node->type, .node = node, .token = &token});
  }

  // Begins behind the opening bracket and takes the closing one.
  StatusOr<std::vector<int>> ParseArgs(std::string_view close, std::string_view where) {
    std::vector<int> args = {};
    if (tokens_.TakeSymbol(close)) return args;
    do {
      KILN_ASSIGN_OR_RETURN(const int arg, ParseExpression());
      args.push_back(arg);
    } while (tokens_.TakeSymbol(","));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(close, where));
    return args;
  }

  StatusOr<int> ParseLoad(const Token& name) {
    const std::optional<ExprScope::Slot> slot =
        scope_.slot ? scope_.slot(name.text) : std::optional<ExprScope::Slot>();
    if (!slot) return TokenStream::ErrorAt(name, fmt::format("unknown tensor '{}'", name.text));
    KILN_ASSIGN_OR_RETURN(std::vector<int> indices, ParseArgs("]", "after the index list"));
    if (std::ssize(indices) != slot->rank) {
      return TokenStream::ErrorAt(name, fmt::format("'{}' has {} dimensions, found {} indices",
                                                    name.text, slot->rank, indices.size()));
    }
    for (int i : indices) {
      if (At(i).type && !At(i).type->is_int()) {
        return TokenStream::ErrorAt(
            *At(i).token,
            fmt::format("an index of type {}, expected an int", TypeName(*At(i).type)));
      }
    }
    return Add({.form = Form::kLoad,
                .type = slot->type,
                .id = slot->slot,
                .token = &name,
                .args = std::move(indices)});
  }

  Status CheckCount(const Token& name, const std::vector<int>& args, int expected) {
    if (std::ssize(args) == expected) return OkStatus();
    return TokenStream::ErrorAt(name, fmt::format("{} takes {} argument{}, found {}", name.text,
                                                  expected, expected == 1 ? "" : "s", args.size()));
  }

  StatusOr<int> ParseCall(const Token& name) {
    KILN_ASSIGN_OR_RETURN(std::vector<int> args, ParseArgs(")", "after the arguments"));
    if (name.text == "min" || name.text == "max") {
      KILN_RETURN_IF_ERROR(CheckCount(name, args, 2));
      return MakeBinary(name.text == "min" ? Op::kMin : Op::kMax, name, args[0], args[1]);
    }
    if (name.text == "select" || name.text == "if") {
      KILN_RETURN_IF_ERROR(CheckCount(name, args, 3));
      KILN_RETURN_IF_ERROR(CheckBool(args[0], "the condition"));
      return MakeOperands(name.text == "if" ? Op::kIf : Op::kSelect, name, std::move(args), 1);
    }
    // The name may be that of a conversion of bits, as in int32.bits(x).
    constexpr std::string_view kBits = ".bits";
    const bool is_bits = name.text.ends_with(kBits);
    const std::string_view type_name =
        name.text.substr(0, name.text.size() - (is_bits ? kBits.size() : 0));
    if (const StatusOr<Type> type = ParseType(type_name); type.ok()) {
      KILN_RETURN_IF_ERROR(CheckCount(name, args, 1));
      KILN_ASSIGN_OR_RETURN(const Expr node,
                            is_bits ? BuildBits(args[0], *type, name) : BuildCast(args[0], *type));
      const int height = At(args[0]).height + 1;
      KILN_ASSIGN_OR_RETURN(const int result, AddNode(node, name));
      if (height > kMaxExprDepth) return TooDeep(name);
      At(result).height = height;
      return result;
    }
    const StatusOr<Intrinsic> intrinsic = ParseIntrinsic(name.text);
    if (!intrinsic.ok()) {
      return TokenStream::ErrorAt(
          name,
          fmt::format(
              "unknown function '{}': know min, max, select, if, the types (casts; bits as in "
              "int32.bits), exp, log, "
              "sqrt, rsqrt, tanh, sigmoid, erf, pow, abs, floor, ceil, round, sin, cos, exp2, log2",
              name.text));
    }
    KILN_RETURN_IF_ERROR(CheckCount(name, args, IntrinsicArity(*intrinsic)));
    KILN_ASSIGN_OR_RETURN(const int result, MakeOperands(Op::kCall, name, std::move(args), 0));
    At(result).id = static_cast<int32_t>(*intrinsic);
    At(result).wants_float |= *intrinsic != Intrinsic::kAbs;
    return result;
  }

  // ---- types

  Status CheckBool(int i, std::string_view who) {
    if (At(i).type == kBool) return OkStatus();
    return TokenStream::ErrorAt(
        *At(i).token,
        fmt::format("{} needs a bool, found {}", who,
                    At(i).type ? TypeName(*At(i).type) : std::string_view("a number")));
  }

  StatusOr<int> MakeBinary(Op op, const Token& token, int a, int b) {
    if (op == Op::kAnd || op == Op::kOr) {
      KILN_RETURN_IF_ERROR(CheckBool(a, fmt::format("'{}'", token.text)));
      KILN_RETURN_IF_ERROR(CheckBool(b, fmt::format("'{}'", token.text)));
    }
    return MakeOperands(op, token, {a, b}, 0);
  }

  // Makes an operation whose arguments from `first` on have one type. The result has the same type
  // unless the operation is a comparison.
  StatusOr<int> MakeOperands(Op op, const Token& token, std::vector<int> args, size_t first) {
    Syntax result{.form = Form::kOp, .op = op, .token = &token};
    result.wants_float = op == Op::kDiv;
    for (size_t i = first; i < args.size(); ++i) {
      const Syntax& arg = At(args[i]);
      result.wants_float |= arg.wants_float;
      if (!arg.type) continue;
      if (result.type && *result.type != *arg.type) {
        return TokenStream::ErrorAt(
            token,
            fmt::format("'{}' of {} and {}: cast one, as in {}(x)", token.text,
                        TypeName(*result.type), TypeName(*arg.type), TypeName(*result.type)));
      }
      result.type = arg.type;
    }
    result.args = std::move(args);
    if (IsComparison(op)) {
      // The operands need no more context, so their nodes are built.
      const Type type = result.type ? *result.type : result.wants_float ? kFloat32 : kIndex;
      KILN_ASSIGN_OR_RETURN(const Expr a, Build(result.args[0], type));
      KILN_ASSIGN_OR_RETURN(const Expr b, Build(result.args[1], type));
      const int height = std::max(At(result.args[0]).height, At(result.args[1]).height) + 1;
      if (height > kMaxExprDepth) return TooDeep(token);
      KILN_ASSIGN_OR_RETURN(const int node, AddNode(pool_.Binary(op, a, b), token));
      At(node).height = height;
      return node;
    }
    return Add(std::move(result));
  }

  Type UsualType(int i) {
    const Syntax& syntax = At(i);
    if (syntax.type) return *syntax.type;
    return syntax.wants_float ? kFloat32 : kIndex;
  }

  // ---- nodes

  StatusOr<Expr> BuildCast(int i, Type type) {
    const Syntax& syntax = At(i);
    const bool is_number_of_kind = syntax.is_literal() && !type.is_bool() &&
                                   (type.is_float() || syntax.form == Form::kIntLiteral);
    if (is_number_of_kind) return BuildLiteral(syntax, type);
    KILN_ASSIGN_OR_RETURN(const Expr inner, Build(i, UsualType(i)));
    return pool_.Cast(type, inner);
  }

  StatusOr<Expr> BuildBits(int i, Type type, const Token& name) {
    KILN_ASSIGN_OR_RETURN(const Expr inner, Build(i, UsualType(i)));
    const Type from = inner->type;
    if (from.bits == type.bits && !type.is_bool()) return pool_.Reinterpret(type, inner);
    return TokenStream::ErrorAt(
        name, fmt::format("{} needs as many bits, found {}", name.text, TypeName(from)));
  }

  // True for a finite number that was rounded to infinity, or to the largest value if the type has
  // no infinity.
  static bool IsTooLarge(double number, double rounded, Type type) {
    if (std::isinf(number)) return false;
    return std::isinf(rounded) ||
           (Float8FormatOf(type) != nullptr && std::abs(number) > LargestFinite(type));
  }

  StatusOr<Expr> BuildLiteral(const Syntax& syntax, Type type) {
    const std::string sign = syntax.is_negative ? "-" : "";
    const auto does_not_fit = [&] {
      return TokenStream::ErrorAt(*syntax.token, fmt::format("{}{} does not fit {}", sign,
                                                             syntax.token->text, TypeName(type)));
    };
    if (type.is_bool() || (type.is_int() && syntax.form == Form::kFloatLiteral)) {
      return TokenStream::ErrorAt(
          *syntax.token,
          fmt::format("expected {}, found {}{}", TypeName(type), sign, syntax.token->text));
    }
    if (syntax.form == Form::kFloatLiteral) {
      const Expr e = pool_.Float(syntax.number, type);
      return IsTooLarge(syntax.number, e->float_value, type) ? does_not_fit() : StatusOr<Expr>(e);
    }
    const uint64_t magnitude = syntax.magnitude;
    const uint64_t most = syntax.is_negative                   ? uint64_t{1} << 63
                          : type == kUInt64 || type.is_float() ? UINT64_MAX
                                                               : uint64_t{INT64_MAX};
    if (magnitude > most || (type == kUInt64 && syntax.is_negative && magnitude > 0))
      return does_not_fit();
    const auto value = static_cast<int64_t>(syntax.is_negative ? -magnitude : magnitude);
    if (type.is_int()) {
      return WrapToType(value, type) == value ? StatusOr<Expr>(pool_.Int(value, type))
                                              : does_not_fit();
    }
    const Type from = syntax.is_negative ? kInt64 : kUInt64;
    const double number = CastValue(Value::Int(value), from, type).f;
    return IsTooLarge(static_cast<double>(magnitude), number, type) ? StatusOr<Expr>(does_not_fit())
                                                                    : pool_.Float(number, type);
  }

  StatusOr<Expr> BuildIndex(int i) {
    const Type type = UsualType(i);
    return Build(i, type.is_int() ? type : kIndex);
  }

  StatusOr<Expr> Build(int i, Type type) {
    const Syntax& syntax = At(i);
    if (syntax.type && *syntax.type != type) {
      return TokenStream::ErrorAt(
          *syntax.token, fmt::format("expected {}, found an expression of type {}", TypeName(type),
                                     TypeName(*syntax.type)));
    }
    switch (syntax.form) {
      case Form::kNode:
        return syntax.node;
      case Form::kIntLiteral:
      case Form::kFloatLiteral:
        return BuildLiteral(syntax, type);
      case Form::kAllOnes:
        return pool_.Int(-1, type);
      case Form::kLoad: {
        std::vector<Expr> indices;
        for (int a : syntax.args) {
          KILN_ASSIGN_OR_RETURN(const Expr index, BuildIndex(a));
          indices.push_back(index);
        }
        return pool_.Load(syntax.id, indices, type);
      }
      case Form::kOp:
        break;
    }
    return BuildOp(syntax, type);
  }

  StatusOr<Expr> BuildOp(const Syntax& syntax, Type type) {
    const bool is_abs = static_cast<Intrinsic>(syntax.id) == Intrinsic::kAbs;
    const bool needs_float =
        syntax.op == Op::kDiv || (syntax.op == Op::kCall && !(is_abs && type.is_int()));
    if (needs_float && !type.is_float()) {
      return TokenStream::ErrorAt(
          *syntax.token,
          fmt::format("'{}' is for floats, found {}{}", syntax.token->text, TypeName(type),
                      syntax.op == Op::kDiv ? ": use '//'" : ": cast it, as in float32(x)"));
    }
    if (IsBits(syntax.op) && !type.is_int() && (!type.is_bool() || syntax.op > Op::kBitXor)) {
      return TokenStream::ErrorAt(*syntax.token, fmt::format("'{}' is for integers, found {}",
                                                             syntax.token->text, TypeName(type)));
    }
    const bool is_choice = syntax.op == Op::kSelect || syntax.op == Op::kIf;
    std::vector<Expr> args;
    for (size_t i = 0; i < syntax.args.size(); ++i) {
      KILN_ASSIGN_OR_RETURN(const Expr arg,
                            Build(syntax.args[i], is_choice && i == 0 ? kBool : type));
      args.push_back(arg);
    }
    switch (syntax.op) {
      case Op::kNot:
        return pool_.Not(args[0]);
      case Op::kSelect:
        return pool_.Select(args[0], args[1], args[2]);
      case Op::kIf:
        return pool_.If(args[0], args[1], args[2]);
      case Op::kCall:
        return pool_.Call(static_cast<Intrinsic>(syntax.id), args);
      default:
        return pool_.Binary(syntax.op, args[0], args[1]);
    }
  }

  TokenStream& tokens_;
  const ExprScope& scope_;
  ExprPool& pool_;
  std::vector<Syntax> syntax_;
  int depth_ = 0;
};

}  // namespace

StatusOr<Expr> ParseExpr(TokenStream& tokens, const ExprScope& scope, ExprPool& pool,
                         std::optional<Type> context) {
  return Parser(tokens, scope, pool).Parse(context);
}

StatusOr<Expr> ParseIndexExpr(TokenStream& tokens, const ExprScope& scope, ExprPool& pool) {
  return Parser(tokens, scope, pool).ParseIndex();
}

StatusOr<Expr> ParseExprText(std::string_view text, const ExprScope& scope, ExprPool& pool,
                             std::optional<Type> context) {
  KILN_ASSIGN_OR_RETURN(TokenStream tokens, TokenStream::Tokenize(text));
  KILN_ASSIGN_OR_RETURN(const Expr e, ParseExpr(tokens, scope, pool, context));
  KILN_RETURN_IF_ERROR(tokens.ExpectEnd());
  return e;
}

}  // namespace kiln::ir
