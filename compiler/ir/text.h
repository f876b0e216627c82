// Expressions as text, in the form that DAG text, program text and messages share. Parsing the text
// of an expression gives the same node.
//
//   a + b*c   a - b   a / b (floats)   -x (is 0 - x)
//   a // b   a % b (both round towards minus infinity)
//   a < b   <=   >   >=   ==   !=   !c   c && d   c || d
//   a & b   a | b   a ^ b   ~a   a << b   a >> b (ints; & | ^ of bools evaluate both sides)
//   c ? a : b (is if(c, a, b), and printed so)
//   min(a, b)   max(a, b)   select(c, a, b)   if(c, a, b) (evaluates one side)
//   float16(x) (cast)   exp(x) ...   data[i, j + 1]   scalar[]
// Operators bind as in C. Operators of one level associate to the left; comparisons do not chain.
//
// Literals: 3, 0.5, 1e-05, inf, nan, true. An int literal is an int64, and a float literal (with a
// point or an exponent) is a float32, unless the other operand or the place of the literal requires
// another type. int32(3) and float16(0.1) give the type. An int literal may stand for a float: x +
// 1.
//
// The parser is recursive: it refuses text whose tree is higher than kMaxExprDepth or whose
// brackets nest deeper than some 250. Longer expressions can be made and printed, but not read.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/ir/expr.h"
#include "compiler/ir/lexer.h"

namespace kiln::ir {

inline constexpr int kMaxExprDepth = 1000;
// Limit of the parser's own recursion, which takes two levels for each bracket inside an operand.
inline constexpr int kMaxExprNesting = 500;

// Names of variables and load slots. They are printed through NameText. Without a function the
// names are v0, v1, ... and b0, b1, ...
struct ExprNames {
  std::function<std::string(int32_t id)> var;
  std::function<std::string(int32_t slot)> slot;
};

// Returns the text for a place where the parser expects the type `context`. Without a context the
// text tells its own type.
std::string ExprText(Expr e, const ExprNames& names = {}, std::optional<Type> context = {});
void AppendExpr(std::string& out, Expr e, const ExprNames& names, std::optional<Type> context = {});

// Resolves names for the parser.
struct ExprScope {
  struct Slot {
    int32_t slot;
    Type type;
    int rank;
  };
  // Returns null if there is no such variable.
  std::function<Expr(std::string_view name)> var;
  // Returns nullopt if there is no such slot.
  std::function<std::optional<Slot>(std::string_view name)> slot;
  // Reads an expression that is written like a call but is none, from behind its name on: sum(k: 8)
  // x[k]. Returns null and reads nothing if it is a call. The function may be missing.
  std::function<StatusOr<Expr>(const Token& name, TokenStream& tokens)> reduction = {};
};

// Parses one expression and stops behind it. The result has the type `context` if there is one,
// else its own.
StatusOr<Expr> ParseExpr(TokenStream& tokens, const ExprScope& scope, ExprPool& pool,
                         std::optional<Type> context = {});
// Parses an expression for a place that takes any int type (indices). Literals are kIndex.
StatusOr<Expr> ParseIndexExpr(TokenStream& tokens, const ExprScope& scope, ExprPool& pool);

// Parses a text that must be one expression.
StatusOr<Expr> ParseExprText(std::string_view text, const ExprScope& scope, ExprPool& pool,
                             std::optional<Type> context = {});

// Prints a finite float with a point or an exponent, and with as few digits as are needed to read
// back the same float of this type.
std::string FloatText(double value, Type type);

}  // namespace kiln::ir
