#include "compiler/formula/expression.h"

#include <algorithm>
#include <limits>

#include "compiler/ir/lexer.h"

namespace kiln::formula {
namespace {

using Kind = Expression::Kind;

constexpr int kCompare = 3, kUnaryPrecedence = 6, kAtom = 7;

// Returns how strongly an operator binds, or 0 if the text is no operator.
int Precedence(std::string_view op) {
  if (op == "||") return 1;
  if (op == "&&") return 2;
  if (op == "==" || op == "!=" || op == "<" || op == "<=" || op == ">" || op == ">=")
    return kCompare;
  if (op == "+" || op == "-") return 4;
  if (op == "*" || op == "//" || op == "%") return 5;
  return 0;
}
int PrecedenceOf(const Expression& expression) {
  if (expression.kind == Kind::kBinary) return Precedence(expression.text);
  if (expression.kind == Kind::kUnary) return kUnaryPrecedence;
  return expression.kind == Kind::kNumber && expression.number < 0 ? kUnaryPrecedence : kAtom;
}

std::string List(const std::vector<Expression>& items) {
  std::string text;
  for (const Expression& item : items) text += (text.empty() ? "" : ", ") + PrintExpression(item);
  return text;
}

std::string Bracketed(const Expression& expression, int least) {
  const std::string text = PrintExpression(expression);
  return PrecedenceOf(expression) < least ? "(" + text + ")" : text;
}

// Rounds towards minus infinity, as Python does.
StatusOr<int64_t> Divide(std::string_view op, int64_t a, int64_t b) {
  if (b == 0) return InvalidArgument("{} {} 0", a, op);
  if (a == std::numeric_limits<int64_t>::min() && b == -1)
    return InvalidArgument("{} {} {} is beyond 64 bits", a, op, b);
  const int64_t remainder = a % b;
  const bool inexact = remainder != 0 && (remainder < 0) != (b < 0);
  if (op == "%") return inexact ? remainder + b : remainder;
  return a / b - (inexact ? 1 : 0);
}

StatusOr<int64_t> Combine(std::string_view op, int64_t a, int64_t b) {
  int64_t result = 0;
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  if (op == ">=") return a >= b;
  if (op == "//" || op == "%") return Divide(op, a, b);
  const bool overflows = op == "+"   ? __builtin_add_overflow(a, b, &result)
                         : op == "-" ? __builtin_sub_overflow(a, b, &result)
                                     : __builtin_mul_overflow(a, b, &result);
  if (overflows) return InvalidArgument("{} {} {} is beyond 64 bits", a, op, b);
  return result;
}

using Leaf = absl::FunctionRef<StatusOr<int64_t>(const Expression&)>;

StatusOr<int64_t> EvaluateBinary(const Expression& e, Leaf leaf) {
  KILN_ASSIGN_OR_RETURN(const int64_t a, Evaluate(e.args[0], leaf));
  if (e.text == "&&" && a == 0) return 0;
  if (e.text == "||" && a != 0) return 1;
  KILN_ASSIGN_OR_RETURN(const int64_t b, Evaluate(e.args[1], leaf));
  if (e.text == "&&" || e.text == "||") return b != 0;
  const StatusOr<int64_t> result = Combine(e.text, a, b);
  return result.ok() ? result : AtPosition(e.at, result.status());
}

StatusOr<int64_t> EvaluateFunction(const Expression& e, Leaf leaf) {
  std::vector<int64_t> values;
  for (const Expression& arg : e.args) {
    KILN_ASSIGN_OR_RETURN(const int64_t value, Evaluate(arg, leaf));
    values.push_back(value);
  }
  if (e.text == "min") return *std::ranges::min_element(values);
  if (e.text == "max") return *std::ranges::max_element(values);
  const StatusOr<int64_t> down = Divide("//", values[0], values[1]);
  if (!down.ok()) return AtPosition(e.at, down.status());
  return *down * values[1] == values[0] ? *down : *down + 1;
}

}  // namespace

Status AtPosition(const TextPosition& at, const Status& status) {
  if (Message(status).starts_with("line ")) return status;
  return Annotate(status, fmt::format("line {}, column {}", at.line, at.column));
}

bool IsNumericFunction(std::string_view name) {
  return name == "min" || name == "max" || name == "ceil_div";
}

std::string PrintExpression(const Expression& e) {
  switch (e.kind) {
    case Kind::kNumber:
      return fmt::format("{}", e.number);
    case Kind::kName:
      return e.text == "true" || e.text == "false" ? e.text : ir::NameText(e.text);
    case Kind::kIndex:
      return fmt::format("{}[{}]", ir::NameText(e.text), PrintExpression(e.args[0]));
    case Kind::kCall:
      return fmt::format("{}({})", e.text, List(e.args));
    case Kind::kUnary:
      return e.text + Bracketed(e.args[0], kUnaryPrecedence);
    case Kind::kBinary: {
      const int precedence = Precedence(e.text);
      // A comparison of a comparison is put in brackets, because it would read as a chain.
      const int left = precedence == kCompare ? precedence + 1 : precedence;
      return fmt::format("{} {} {}", Bracketed(e.args[0], left), e.text,
                         Bracketed(e.args[1], precedence + 1));
    }
    case Kind::kList:
      return fmt::format("[{}]", List(e.args));
  }
  return {};
}

StatusOr<int64_t> Evaluate(const Expression& e, Leaf leaf) {
  switch (e.kind) {
    case Kind::kNumber:
      return e.number;
    case Kind::kName:
    case Kind::kIndex:
      break;
    case Kind::kCall:
      if (IsNumericFunction(e.text)) return EvaluateFunction(e, leaf);
      break;
    case Kind::kUnary: {
      KILN_ASSIGN_OR_RETURN(const int64_t value, Evaluate(e.args[0], leaf));
      if (e.text == "!") return value == 0;
      const StatusOr<int64_t> negative = Combine("-", 0, value);
      return negative.ok() ? negative : AtPosition(e.at, negative.status());
    }
    case Kind::kBinary:
      return EvaluateBinary(e, leaf);
    case Kind::kList:
      return AtPosition(e.at, InvalidArgument("expected a number, found a list"));
  }
  StatusOr<int64_t> value = leaf(e);
  return value.ok() ? value : AtPosition(e.at, value.status());
}

}  // namespace kiln::formula
