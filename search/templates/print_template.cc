#include "compiler/ir/lexer.h"
#include "search/templates/template_text.h"

namespace kiln::search {
namespace {

using Kind = Statement::Kind;

std::string Names(const Statement& statement) {
  std::string text;
  for (const std::string& name : statement.names)
    text += (text.empty() ? "" : ", ") + ir::NameText(name);
  return text;
}

std::string Call(const Statement& statement) {
  std::string text;
  for (const Expression& arg : statement.args)
    text += (text.empty() ? "" : ", ") + PrintExpression(arg);
  for (const auto& [option, value] : statement.options)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", option, PrintExpression(value));
  return fmt::format("{}({})", statement.word, text);
}

std::string Line(const Statement& statement) {
  switch (statement.kind) {
    case Kind::kStage:
      return fmt::format("stage {} = {}", Names(statement), Call(statement));
    case Kind::kLet:
      return fmt::format("let {} = {}", Names(statement), PrintExpression(statement.args[0]));
    case Kind::kKnob: {
      if (statement.word != "choice")
        return fmt::format("knob {} = {}", Names(statement), Call(statement));
      const Expression values{.kind = Expression::Kind::kList, .args = statement.args};
      return fmt::format("knob {} = {}", Names(statement), PrintExpression(values));
    }
    case Kind::kFilter:
      return "filter " + PrintExpression(statement.args[0]);
    case Kind::kRequire:
      return "require " + PrintExpression(statement.args[0]);
    case Kind::kStep:
      break;
  }
  std::string line = statement.names.empty() ? "" : Names(statement) + " = ";
  line += Call(statement);
  if (statement.condition) line += " if " + PrintExpression(*statement.condition);
  return line;
}

}  // namespace

std::string PrintTemplate(const TemplateText& text) {
  std::string printed =
      fmt::format("template {} for {}\n", ir::NameText(text.name), text.for_gpu ? "gpu" : "cpu");
  for (const Statement& statement : text.statements) printed += Line(statement) + "\n";
  return printed;
}

}  // namespace kiln::search
