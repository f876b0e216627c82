// Expressions that people write in the texts of templates and of hand-written kernels: whole
// numbers, computed with int64. Conditions are 0 and 1.
//
//   block_x * block_y <= 1024 && tile % vector == 0
//
// Operators bind as in C. // and % round down as in Python, whose words and, or and not may stand
// for &&, || and !, and whose chains a < b <= c mean a < b && b <= c. Functions: min, max,
// ceil_div.
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

// Where something stands in a text, from 1; columns count bytes.
struct TextPosition {
  int line = 0, column = 0;
};

struct Expression {
  enum class Kind : uint8_t {
    kNumber,  // number
    kName,    // text
    kIndex,   // text[args[0]]
    kCall,    // text(args...)
    kUnary,   // text is - or !
    kBinary,  // text is || && == != < <= > >= + - * // %
    kList,    // [args...]
  };
  Kind kind = Kind::kNumber;
  int64_t number = 0;
  std::string text = {};
  std::vector<Expression> args = {};
  TextPosition at = {};

  bool is_name() const { return kind == Kind::kName; }
  // Where it stands does not count.
  bool operator==(const Expression& other) const {
    return kind == other.kind && number == other.number && text == other.text && args == other.args;
  }
};

// Reads an expression where the tokens stand. `is_keyword`: words that are no names here. Errors
// have the position. Operators are at most kMaxExpressionDepth deep in each other, and so are brackets.
inline constexpr int kMaxExpressionDepth = 100;
StatusOr<Expression> ParseExpression(ir::TokenStream& tokens,
                                     absl::FunctionRef<bool(std::string_view)> is_keyword);
// A text that is one expression, with any names.
StatusOr<Expression> ParseExpression(std::string_view text);

// With as few brackets as read back to the same.
std::string PrintExpression(const Expression& expression);

// "line 3, column 14: message", the code kept. A status that has a position keeps it.
Status AtPosition(const TextPosition& at, const Status& status);

// Functions of numbers: min, max (two or more), ceil_div (two).
bool IsNumericFunction(std::string_view name);

// The value; `leaf` gives that of names, of indices, and of calls of functions that are not numeric
// ones. && and || evaluate their right side only where it counts. InvalidArgument with the
// position: a division by 0, a result beyond int64; errors of `leaf` get the position of the leaf.
StatusOr<int64_t> Evaluate(const Expression& expression,
                           absl::FunctionRef<StatusOr<int64_t>(const Expression&)> leaf);

}  // namespace kiln::formula
