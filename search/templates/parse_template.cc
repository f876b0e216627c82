#include <algorithm>

#include "compiler/ir/lexer.h"
#include "search/templates/scope.h"
#include "search/templates/template_text.h"

namespace kiln::search {
namespace {

using ir::Token;
using ir::TokenKind;
using ir::TokenStream;

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
    KILN_ASSIGN_OR_RETURN(Expression condition, Formula());
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
    KILN_ASSIGN_OR_RETURN(Expression value, Formula());
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
      KILN_ASSIGN_OR_RETURN(Expression values, Formula());
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
      KILN_ASSIGN_OR_RETURN(statement.condition, Formula());
    }
    return statement;
  }

  // Parses word(arg, ..., option=value, ...). Only knobs have options.
  Status Call(Statement& statement) {
    KILN_ASSIGN_OR_RETURN(statement.word, Name("a word before '('"));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("(", fmt::format("after {}", statement.word)));
    if (tokens_.TakeSymbol(")")) return OkStatus();
    do {
      if (!tokens_.Peek(1).is_symbol("=")) {
        if (!statement.options.empty()) return tokens_.Expected("an option NAME=VALUE");
        KILN_ASSIGN_OR_RETURN(Expression arg, Formula());
        statement.args.push_back(std::move(arg));
        continue;
      }
      if (statement.kind != Statement::Kind::kKnob)
        return tokens_.Expected("an argument without '='");
      // `filter` is a word of the language, and also the name of an option.
      KILN_ASSIGN_OR_RETURN(std::string option, tokens_.ExpectName("the name of an option"));
      tokens_.Next();
      KILN_ASSIGN_OR_RETURN(Expression value, Formula());
      statement.options.emplace_back(std::move(option), std::move(value));
    } while (tokens_.TakeSymbol(","));
    return tokens_.ExpectSymbol(")", "or ',' after an argument");
  }

  StatusOr<Expression> Formula() { return formula::ParseExpression(tokens_, IsKeyword); }

  TokenStream tokens_;
  TemplateText text_;
  Scope scope_;
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
