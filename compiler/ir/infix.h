// The operators that stand between their operands: their symbols in every text of expressions, and
// how tightly they bind in the text form (compiler/ir/text.h).
#pragma once

#include <string_view>

#include "compiler/ir/expr.h"

namespace kiln::ir {

// A higher level binds tighter.
enum InfixLevel : int {
  kOrLevel = 1,
  kAndLevel,
  kBitOrLevel,
  kBitXorLevel,
  kBitAndLevel,
  kCompareLevel,
  kShiftLevel,
  kSumLevel,
  kProductLevel
};

struct Infix {
  Op op;
  std::string_view symbol;
  InfixLevel level;
};

inline constexpr Infix kInfixes[] = {
    {Op::kOr, "||", kOrLevel},           {Op::kAnd, "&&", kAndLevel},
    {Op::kBitOr, "|", kBitOrLevel},      {Op::kBitXor, "^", kBitXorLevel},
    {Op::kBitAnd, "&", kBitAndLevel},    {Op::kEq, "==", kCompareLevel},
    {Op::kNe, "!=", kCompareLevel},      {Op::kLt, "<", kCompareLevel},
    {Op::kLe, "<=", kCompareLevel},      {Op::kGt, ">", kCompareLevel},
    {Op::kGe, ">=", kCompareLevel},      {Op::kShl, "<<", kShiftLevel},
    {Op::kShr, ">>", kShiftLevel},       {Op::kAdd, "+", kSumLevel},
    {Op::kSub, "-", kSumLevel},          {Op::kMul, "*", kProductLevel},
    {Op::kDiv, "/", kProductLevel},      {Op::kFloorDiv, "//", kProductLevel},
    {Op::kFloorMod, "%", kProductLevel},
};

// Returns null if `op` is no infix operator.
constexpr const Infix* FindInfix(Op op) {
  for (const Infix& infix : kInfixes) {
    if (infix.op == op) return &infix;
  }
  return nullptr;
}
constexpr const Infix* FindInfix(std::string_view symbol) {
  for (const Infix& infix : kInfixes) {
    if (infix.symbol == symbol) return &infix;
  }
  return nullptr;
}

// Returns the symbol of a binary operator: "+", "&&", ..., or "min", "max".
constexpr std::string_view BinarySymbol(Op op) {
  if (op == Op::kMin) return "min";
  if (op == Op::kMax) return "max";
  const Infix* infix = FindInfix(op);
  return infix != nullptr ? infix->symbol : "?";
}

}  // namespace kiln::ir
