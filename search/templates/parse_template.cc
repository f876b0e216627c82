#include <algorithm>
#include <limits>

#include "compiler/ir/lexer.h"
#include "search/templates/scope.h"
#include "search/templates/template_text.h"

namespace kiln::search {
namespace {

using ir::Token;
using ir::TokenKind;
using ir::TokenStream;
using Kind = Expression::Kind;

// Of brackets and operators in each other.
constexpr int kMaxDepth = 100;

// Operators by how strongly they bind, weakest first.
constexpr std::string_view kOr[] = {"||"}, kAnd[] = {"&&"},
                           kCompare[] = {"==", "!=", "<=", ">=", "<", ">"}, kAdd[] = {"+", "-"},
                           kMultiply[] = {"*", "//", "%"};
constexpr std::span<const std::string_view> kLevels[] = {kOr, kAnd, kCompare, kAdd, kMultiply};

bool IsKeyword(std::string_view word) {
  static constexpr std::string_view kWords[] = {"template", "for",     "stage", "let",  "knob",
                                                "filter",   "require", "if",    "true", "false"};
  return std::ranges::find(kWords, word) != std::end(kWords);
}

TextPosition PositionOf(const Token& token) { return {token.line, token.column}; }

class TemplateParser {
 public:
  explicit TemplateParser(TokenStream tokens) : tokens_(std::move(tokens)) {}

  StatusOr<TemplateText> Parse() {
    KILN_RETURN_IF_ERROR(tokens_.ExpectWord("template", "at the start of a template"));
    KILN_ASSIGN_OR_RETURN(text_.name, Name("the name of the template"));
    KILN_RETURN_IF_ERROR(tokens_.ExpectWord("for", "after the name of the template"));
    if (tokens_.TakeWord("gpu")) {
      text_.for_gpu = true;
    } else if (!tokens_.TakeWord("cpu")) {
      return tokens_.Expected("cpu or gpu");
    }
    while (!tokens_.AtEnd()) {
      KILN_ASSIGN_OR_RETURN(Statement statement, ParseStatement());
      KILN_RETURN_IF_ERROR(scope_.Add(statement));
      if (text_.statements.size() == kMaxTemplateStatements)
        return AtPosition(statement.at, InvalidArgument("expected at most {} statements",
                                                        kMaxTemplateStatements));
      text_.statements.push_back(std::move(statement));
    }
    return std::move(text_);
  }

 private:
  StatusOr<std::string> Name(std::string_view what) {
    const Token& token = tokens_.Peek();
    if (token.kind == TokenKind::kName && IsKeyword(token.text))
      return TokenStream::ErrorAt(
          token, fmt::format("expected {}, found the word {} of the language", what, token.text));
    return tokens_.ExpectName(what);
  }

  StatusOr<Statement> ParseStatement() {
    Statement statement;
    statement.at = PositionOf(tokens_.Peek());
    if (tokens_.TakeWord("stage")) return Stage(std::move(statement));
    if (tokens_.TakeWord("let")) return Let(std::move(statement));
    if (tokens_.TakeWord("knob")) return Knob(std::move(statement));
    if (tokens_.TakeWord("filter"))
      return Condition(Statement::Kind::kFilter, std::move(statement));
    if (tokens_.TakeWord("require"))
      return Condition(Statement::Kind::kRequire, std::move(statement));
    return Step(std::move(statement));
  }

  StatusOr<Statement> Condition(Statement::Kind kind, Statement statement) {
    statement.kind = kind;
    KILN_ASSIGN_OR_RETURN(Expression condition, ParseExpression(0));
    statement.args.push_back(std::move(condition));
    return statement;
  }

  StatusOr<Statement> Stage(Statement statement) {
    statement.kind = Statement::Kind::kStage;
    KILN_ASSIGN_OR_RETURN(std::string name, Name("the name of a stage"));
    statement.names.push_back(std::move(name));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("=", "after the name of the stage"));
    KILN_RETURN_IF_ERROR(Call(statement));
    return statement;
  }

  StatusOr<Statement> Let(Statement statement) {
    statement.kind = Statement::Kind::kLet;
    KILN_ASSIGN_OR_RETURN(std::string name, Name("the name of a number"));
    statement.names.push_back(std::move(name));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("=", "after the name of the number"));
    KILN_ASSIGN_OR_RETURN(Expression value, ParseExpression(0));
    statement.args.push_back(std::move(value));
    return statement;
  }

  StatusOr<Statement> Knob(Statement statement) {
    statement.kind = Statement::Kind::kKnob;
    KILN_ASSIGN_OR_RETURN(std::string name, Name("the name of a knob"));
    statement.names.push_back(std::move(name));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("=", "after the name of the knob"));
    if (tokens_.Peek().is_symbol("[")) {
      statement.word = "choice";
      KILN_ASSIGN_OR_RETURN(Expression values, ParseExpression(0));
      statement.args = std::move(values.args);
      return statement;
    }
    KILN_RETURN_IF_ERROR(Call(statement));
    return statement;
  }

  StatusOr<Statement> Step(Statement statement) {
    statement.kind = Statement::Kind::kStep;
    if (!tokens_.Peek(1).is_symbol("(")) {
      do {
        KILN_ASSIGN_OR_RETURN(std::string name,
                              Name("stage, let, knob, filter, require, a step or a name"));
        statement.names.push_back(std::move(name));
      } while (tokens_.TakeSymbol(","));
      KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("=", "or ',' after a name"));
    }
    statement.at = PositionOf(tokens_.Peek());
    KILN_RETURN_IF_ERROR(Call(statement));
    if (tokens_.TakeWord("if")) {
      KILN_ASSIGN_OR_RETURN(statement.condition, ParseExpression(0));
    }
    return statement;
  }

  // word(arg, ..., option=value, ...); options of knobs alone.
  Status Call(Statement& statement) {
    KILN_ASSIGN_OR_RETURN(statement.word, Name("a word before '('"));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("(", fmt::format("after {}", statement.word)));
    if (tokens_.TakeSymbol(")")) return OkStatus();
    do {
      if (!tokens_.Peek(1).is_symbol("=")) {
        if (!statement.options.empty()) return tokens_.Expected("an option NAME=VALUE");
        KILN_ASSIGN_OR_RETURN(Expression arg, ParseExpression(0));
        statement.args.push_back(std::move(arg));
        continue;
      }
      if (statement.kind != Statement::Kind::kKnob)
        return tokens_.Expected("an argument without '='");
      // `filter` is a word of the language, and the name of an option.
      KILN_ASSIGN_OR_RETURN(std::string option, tokens_.ExpectName("the name of an option"));
      tokens_.Next();
      KILN_ASSIGN_OR_RETURN(Expression value, ParseExpression(0));
      statement.options.emplace_back(std::move(option), std::move(value));
    } while (tokens_.TakeSymbol(","));
    return tokens_.ExpectSymbol(")", "or ',' after an argument");
  }

  // Operators of this level and those that bind more.
  StatusOr<Expression> ParseExpression(size_t level) {
    if (level == std::size(kLevels)) return Unary();
    KILN_ASSIGN_OR_RETURN(Expression left, ParseExpression(level + 1));
    for (int operators = 0;; ++operators) {
      const Token& token = tokens_.Peek();
      const auto found = std::ranges::find_if(
          kLevels[level], [&](std::string_view symbol) { return token.is_symbol(symbol); });
      if (found == kLevels[level].end()) return left;
      if (operators == kMaxDepth) return TooDeep();
      Expression both{.kind = Kind::kBinary, .text = std::string(*found), .at = PositionOf(token)};
      tokens_.Next();
      KILN_ASSIGN_OR_RETURN(Expression right, ParseExpression(level + 1));
      both.args.push_back(std::move(left));
      both.args.push_back(std::move(right));
      left = std::move(both);
    }
  }

  StatusOr<Expression> Unary() {
    const Depth depth(depth_);
    if (depth_ > kMaxDepth) return TooDeep();
    const Token& token = tokens_.Peek();
    const TextPosition at = PositionOf(token);
    if (token.is_symbol("-") && tokens_.Peek(1).kind == TokenKind::kInt) {
      KILN_ASSIGN_OR_RETURN(const int64_t number,
                            tokens_.ExpectInt("a number", std::numeric_limits<int64_t>::min(),
                                              std::numeric_limits<int64_t>::max()));
      return Expression{.kind = Kind::kNumber, .number = number, .at = at};
    }
    if (!token.is_symbol("-") && !token.is_symbol("!")) return Atom();
    Expression unary{.kind = Kind::kUnary, .text = std::string(token.text), .at = at};
    tokens_.Next();
    KILN_ASSIGN_OR_RETURN(Expression operand, Unary());
    if (unary.text == "-" && operand.kind == Kind::kNumber && operand.number > 0)
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
    if (tokens_.TakeSymbol("(")) {
      KILN_ASSIGN_OR_RETURN(Expression inner, ParseExpression(0));
      KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(")", "after an expression"));
      return inner;
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
    KILN_ASSIGN_OR_RETURN(std::string name, Name("a number or a name"));
    if (tokens_.TakeSymbol("(")) {
      Expression call{.kind = Kind::kCall, .text = std::move(name), .at = at};
      KILN_ASSIGN_OR_RETURN(call.args, Items(")"));
      return call;
    }
    if (tokens_.TakeSymbol("[")) {
      Expression indexed{.kind = Kind::kIndex, .text = std::move(name), .at = at};
      KILN_ASSIGN_OR_RETURN(Expression index, ParseExpression(0));
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
      KILN_ASSIGN_OR_RETURN(Expression item, ParseExpression(0));
      items.push_back(std::move(item));
    } while (tokens_.TakeSymbol(","));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(close, "or ',' after an item"));
    return items;
  }

  Status TooDeep() const {
    return TokenStream::ErrorAt(tokens_.Peek(),
                                fmt::format("expected expressions at most {} deep", kMaxDepth));
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

  TokenStream tokens_;
  TemplateText text_;
  Scope scope_;
  int depth_ = 0;
};

}  // namespace

StatusOr<TemplateText> ParseTemplate(std::string_view text) {
  if (text.size() > kMaxTemplateBytes)
    return InvalidArgument("the template has {} bytes, expected at most {}", text.size(),
                           kMaxTemplateBytes);
  KILN_ASSIGN_OR_RETURN(TokenStream tokens, TokenStream::Tokenize(text));
  return TemplateParser(std::move(tokens)).Parse();
}

}  // namespace kiln::search
