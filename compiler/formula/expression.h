// Expressions that people write in the texts of templates and of hand-written kernels: whole
// numbers, computed with int64. Conditions are 0 and 1.
//
//   block_x * block_y <= 1024 && tile % vector == 0
//
// Operators bind as in C. // and % round down as in Python. Python's words `and`, `or` and `not`
// may stand for &&, || and !, and chains a < b <= c mean a < b && b <= c as in Python. Functions:
// min, max, ceil_div.
//
// Immutable values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "compiler/ir/lexer.h"

namespace kiln::formula {

// A position in a text. Lines and columns count from 1; columns count bytes.
struct TextPosition {
  int line = 0, column = 0;
};

struct Expression {
  enum class Kind : uint8_t {
    // The number is `number`.
    kNumber,
    // The name is `text`.
    kName,
    // The expression is text[args[0]].
    kIndex,
    // The expression is text(args...).
    kCall,
    // `text` is - or !.
    kUnary,
    // `text` is one of || && == != < <= > >= + - * // %.
    kBinary,
    // The expression is [args...].
    kList,
  };
  Kind kind = Kind::kNumber;
  int64_t number = 0;
  std::string text = {};
  std::vector<Expression> args = {};
  TextPosition at = {};

  bool is_name() const { return kind == Kind::kName; }
  // The position is not compared.
  bool operator==(const Expression& other) const {
    return kind == other.kind && number == other.number && text == other.text && args == other.args;
  }
};

// Reads an expression at the current token. `is_keyword` is true for words that are no names here.
// Errors have the position. Operators nest at most kMaxExpressionDepth deep, and so do brackets.
inline constexpr int kMaxExpressionDepth = 100;
StatusOr<Expression> ParseExpression(ir::TokenStream& tokens,
                                     absl::FunctionRef<bool(std::string_view)> is_keyword);
// Parses a text that is one expression, with any names.
StatusOr<Expression> ParseExpression(std::string_view text);

// Prints with the fewest brackets with which the text reads back to the same expression.
std::string PrintExpression(const Expression& expression);

// Returns "line 3, column 14: message" with the same code. A status that has a position keeps it.
Status AtPosition(const TextPosition& at, const Status& status);

// True for functions of numbers: min, max (two or more arguments), ceil_div (two).
bool IsNumericFunction(std::string_view name);

// Returns the value. `leaf` returns the values of names, of indices, and of calls of other than the
// numeric functions. && and || evaluate their right side only if it decides. InvalidArgument with
// the position: a division by 0, or a result beyond int64. Errors of `leaf` get the position of the
// leaf.
StatusOr<int64_t> Evaluate(const Expression& expression,
                           absl::FunctionRef<StatusOr<int64_t>(const Expression&)> leaf);

}  // namespace kiln::formula
