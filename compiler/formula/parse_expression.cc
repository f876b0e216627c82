#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "compiler/formula/expression.h"

namespace kiln::formula {
namespace {

using ir::Token;
using ir::TokenKind;
using ir::TokenStream;
using Kind = Expression::Kind;

// Operators by how strongly they bind, weakest first.
constexpr std::string_view kOr[] = {"||"}, kAnd[] = {"&&"},
                           kCompare[] = {"==", "!=", "<=", ">=", "<", ">"}, kAdd[] = {"+", "-"},
                           kMultiply[] = {"*", "//", "%"};
constexpr std::span<const std::string_view> kLevels[] = {kOr, kAnd, kCompare, kAdd, kMultiply};
constexpr size_t kCompareLevel = 2;

TextPosition PositionOf(const Token& token) { return {token.line, token.column}; }

// Returns the operator that a token stands for, or "".
std::string_view OperatorOf(const Token& token) {
  if (token.is_word("and")) return "&&";
  if (token.is_word("or")) return "||";
  return token.kind == TokenKind::kSymbol ? token.text : std::string_view();
}

Expression Both(std::string_view op, Expression left, Expression right, const TextPosition& at) {
  Expression both{.kind = Kind::kBinary, .text = std::string(op), .at = at};
  both.args.push_back(std::move(left));
  both.args.push_back(std::move(right));
  return both;
}

// Limit of the size of an operand in the middle of a chain, which is copied: a < b < c becomes a <
// b && b < c.
constexpr int kMaxChainedSize = 1000;

int SizeOf(const Expression& e) {
  int size = 1;
  for (const Expression& arg : e.args) size += SizeOf(arg);
  return size;
}

class ExpressionParser {
 public:
  ExpressionParser(TokenStream& tokens, absl::FunctionRef<bool(std::string_view)> is_keyword)
      : tokens_(tokens), is_keyword_(is_keyword) {}

  // Parses operators of this level and those that bind more strongly.
  StatusOr<Expression> Parse(size_t level = 0) {
    if (level == std::size(kLevels)) return Unary();
    KILN_ASSIGN_OR_RETURN(Expression left, Parse(level + 1));
    // The last operand of a chain of comparisons, which is also the left operand of the next one.
    Expression last;
    for (int operators = 0;; ++operators) {
      const Token& token = tokens_.Peek();
      const std::string_view op = OperatorOf(token);
      if (std::ranges::find(kLevels[level], op) == kLevels[level].end()) return left;
      if (operators == kMaxExpressionDepth) return TooDeep();
      const TextPosition at = PositionOf(token);
      tokens_.Next();
      KILN_ASSIGN_OR_RETURN(Expression right, Parse(level + 1));
      if (level == kCompareLevel && operators > 0) {
        if (SizeOf(last) > kMaxChainedSize) return TooDeep();
        Expression next = Both(op, std::move(last), right, at);
        left = Both("&&", std::move(left), std::move(next), at);
      } else {
        left = Both(op, std::move(left), right, at);
      }
      last = std::move(right);
    }
  }

 private:
  // Parses an expression in brackets, or one behind `not`, which is printed in brackets. Both count
  // as brackets, so that the printed text nests no deeper than the text that was read.
  StatusOr<Expression> InBrackets(size_t level) {
    const Depth depth(brackets_);
    if (brackets_ > kMaxExpressionDepth) return TooDeep();
    return Parse(level);
  }

  StatusOr<Expression> Unary() {
    const Token& token = tokens_.Peek();
    if (tokens_.TakeSymbol("(")) {
      KILN_ASSIGN_OR_RETURN(Expression inner, InBrackets(0));
      KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(")", "after an expression"));
      return inner;
    }
    const Depth depth(depth_);
    if (depth_ > kMaxExpressionDepth) return TooDeep();
    const TextPosition at = PositionOf(token);
    if (token.is_symbol("-") && tokens_.Peek(1).kind == TokenKind::kInt) {
      KILN_ASSIGN_OR_RETURN(const int64_t number,
                            tokens_.ExpectInt("a number", std::numeric_limits<int64_t>::min(),
                                              std::numeric_limits<int64_t>::max()));
      return Expression{.kind = Kind::kNumber, .number = number, .at = at};
    }
    const bool is_not = token.is_symbol("!") || token.is_word("not");
    if (!token.is_symbol("-") && !is_not) return Atom();
    Expression unary{.kind = Kind::kUnary, .text = is_not ? "!" : "-", .at = at};
    const bool is_word = token.is_word("not");
    tokens_.Next();
    // Python's `not` binds less strongly than comparisons.
    KILN_ASSIGN_OR_RETURN(Expression operand, is_word ? InBrackets(kCompareLevel) : Unary());
    if (unary.text == "-" && operand.kind == Kind::kNumber && operand.number >= 0)
      return Expression{.kind = Kind::kNumber, .number = -operand.number, .at = at};
    unary.args.push_back(std::move(operand));
    return unary;
  }

  StatusOr<Expression> Atom() {
    const Token& token = tokens_.Peek();
    const TextPosition at = PositionOf(token);
    if (token.kind == TokenKind::kInt) {
      KILN_ASSIGN_OR_RETURN(const int64_t number,
                            tokens_.ExpectInt("a number", 0, std::numeric_limits<int64_t>::max()));
      return Expression{.kind = Kind::kNumber, .number = number, .at = at};
    }
    if (tokens_.TakeSymbol("[")) {
      Expression list{.kind = Kind::kList, .at = at};
      KILN_ASSIGN_OR_RETURN(list.args, Items("]"));
      return list;
    }
    if (token.kind != TokenKind::kName) return tokens_.Expected("a number or a name");
    if (token.is_word("true") || token.is_word("false")) {
      return Expression{.kind = Kind::kName, .text = std::string(tokens_.Next().text), .at = at};
    }
    if (is_keyword_(token.text)) {
      return TokenStream::ErrorAt(
          token, fmt::format("expected a number or a name, found the word {} of the language",
                             token.text));
    }
    KILN_ASSIGN_OR_RETURN(std::string name, tokens_.ExpectName("a number or a name"));
    if (tokens_.TakeSymbol("(")) {
      Expression call{.kind = Kind::kCall, .text = std::move(name), .at = at};
      KILN_ASSIGN_OR_RETURN(call.args, Items(")"));
      return call;
    }
    if (tokens_.TakeSymbol("[")) {
      Expression indexed{.kind = Kind::kIndex, .text = std::move(name), .at = at};
      KILN_ASSIGN_OR_RETURN(Expression index, Parse());
      indexed.args.push_back(std::move(index));
      KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("]", "after an index"));
      return indexed;
    }
    return Expression{.kind = Kind::kName, .text = std::move(name), .at = at};
  }

  StatusOr<std::vector<Expression>> Items(std::string_view close) {
    std::vector<Expression> items;
    if (tokens_.TakeSymbol(close)) return items;
    do {
      KILN_ASSIGN_OR_RETURN(Expression item, Parse());
      items.push_back(std::move(item));
    } while (tokens_.TakeSymbol(","));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(close, "or ',' after an item"));
    return items;
  }

  Status TooDeep() const {
    return TokenStream::ErrorAt(
        tokens_.Peek(), fmt::format("expected expressions at most {} deep", kMaxExpressionDepth));
  }

  class Depth {
   public:
    explicit Depth(int& depth) : depth_(depth) { ++depth_; }
    ~Depth() { --depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    int& depth_;
  };

  TokenStream& tokens_;
  const absl::FunctionRef<bool(std::string_view)> is_keyword_;
  int depth_ = 0, brackets_ = 0;
};

}  // namespace

StatusOr<Expression> ParseExpression(TokenStream& tokens,
                                     absl::FunctionRef<bool(std::string_view)> is_keyword) {
  return ExpressionParser(tokens, is_keyword).Parse();
}

StatusOr<Expression> ParseExpression(std::string_view text) {
  KILN_ASSIGN_OR_RETURN(TokenStream tokens, TokenStream::Tokenize(text));
  KILN_ASSIGN_OR_RETURN(Expression expression,
                        ParseExpression(tokens, [](std::string_view) { return false; }));
  if (tokens.Peek().is_symbol("/"))
    return tokens.Expected("// or ceil_div, since these are whole numbers");
  KILN_RETURN_IF_ERROR(tokens.ExpectEnd());
  return expression;
}

}  // namespace kiln::formula
