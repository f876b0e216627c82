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
// Operators bind as in C, all of one line to the left; comparisons do not chain.
//
// Literals: 3, 0.5, 1e-05, inf, nan, true. An int literal is an int64 and a float literal (it has a
// point or an exponent) a float32, unless the other operand or the place it stands in asks for
// another type; int32(3), float16(0.1) say it. An int literal may stand for a float: x + 1.
//
// Recursive: text whose tree is higher than kMaxExprDepth or whose brackets nest deeper than some
// 250 is refused. Longer expressions can be made and printed, but not read.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/ir/expr.h"
#include "compiler/ir/lexer.h"

namespace kiln::ir {

inline constexpr int kMaxExprDepth = 1000;
// The parser's own recursion: two for each bracket inside an operand.
inline constexpr int kMaxExprNesting = 500;

// Names of variables and load slots. They are printed through NameText. A missing function means
// v0, v1, ... and b0, b1, ...
struct ExprNames {
  std::function<std::string(int32_t id)> var;
  std::function<std::string(int32_t slot)> slot;
};

// The text, when it is to be parsed where `context` is expected (or nothing: then it says its own
// type).
std::string ExprText(Expr e, const ExprNames& names = {}, std::optional<Type> context = {});
void AppendExpr(std::string& out, Expr e, const ExprNames& names, std::optional<Type> context = {});

// What names mean to the parser.
struct ExprScope {
  struct Slot {
    int32_t slot;
    Type type;
    int rank;
  };
  std::function<Expr(std::string_view name)> var;                  // null: there is none
  std::function<std::optional<Slot>(std::string_view name)> slot;  // nullopt: there is none
  // Reads what is written like a call and is none, from behind its name on: sum(k: 8) x[k]. Null,
  // with nothing read: it is a call. May be missing.
  std::function<StatusOr<Expr>(const Token& name, TokenStream& tokens)> reduction = {};
};

// Parses one expression and stops behind it. With `context` the result has this type, else the one
// it says itself.
StatusOr<Expr> ParseExpr(TokenStream& tokens, const ExprScope& scope, ExprPool& pool,
                         std::optional<Type> context = {});
// The same for a place that takes any int type (indices): literals are kIndex.
StatusOr<Expr> ParseIndexExpr(TokenStream& tokens, const ExprScope& scope, ExprPool& pool);

// The whole text is one expression.
StatusOr<Expr> ParseExprText(std::string_view text, const ExprScope& scope, ExprPool& pool,
                             std::optional<Type> context = {});

// A finite float is printed with a point or an exponent and as few digits as read back to it in
// this type.
std::string FloatText(double value, Type type);

}  // namespace kiln::ir
