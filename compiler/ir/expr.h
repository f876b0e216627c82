// Expressions: immutable, hash-consed nodes that live in an ExprPool.
//
// Semantics (the interpreter and every code generator agree on these):
//   * Index arithmetic is exact 64-bit; overflow does not happen (the DAG builder refuses tensors
//     that could overflow).
//   * kDiv is true division and only on floats. kFloorDiv and kFloorMod round towards minus
//     infinity; divisors are never 0 (positive constants in all expressions that Kiln makes).
//   * Arithmetic on ints narrower than 64 bits wraps around to their width, modulo 2^bits; unsigned
//     types are 0 to 2^bits - 1. Conversions between ints wrap alike, as in C.
//   * kBitAnd, kBitOr, kBitXor are for ints, by bits of two's complement, and for bools, where both
//     sides are evaluated; ~x is x ^ -1. kShl and kShr are for ints: bits that are shifted out are
//     lost; kShr keeps the sign of signed types. The count is at least 0 and below the bits of the
//     type, which is checked where operators are made.
//   * kReinterpret gives the value of its type whose bits in memory are those of the operand. The
//     operand is first rounded to its own type. Both types have the same number of bits, and
//     neither is bool.
//   * Float arithmetic may be contracted to fused multiply-add; it is never reassociated except by
//     schedule steps that say so (rfactor, split reductions).
//   * kMin and kMax on floats are minimum and maximum of IEEE 754-2019: the result is NaN if an
//     operand is NaN, and -0 is less than +0. Both are therefore associative and commutative: any
//     order and any split of the terms gives the same number. The payload and the sign of a NaN are
//     unspecified, here and in every other operation.
//   * kEq, kLt, kLe, kGt, kGe are false and kNe is true if an operand is NaN. -0 equals +0.
//   * kIf(c, a, b) evaluates only the chosen side, so it may guard an out-of-bounds load. kSelect
//     evaluates both. kAnd, kOr evaluate left to right and stop early.
//   * Expressions have no side effects.
//   * Arithmetic on floats of 16 and 8 bits is carried out in float32 and rounded at each store or
//     cast.
//
// The owner decides what a kVar and a kLoad mean: in the body of a dag::Operator variable i is its
// i-th axis (spatial, then reduce) and slot s its s-th input; in a Program they are loop variables
// and buffers of that program.
//
// Ownership: nodes belong to their pool and die with it; an Expr is a plain pointer. Two
// structurally equal expressions of one pool are the same pointer. Threads: a pool is used by one
// thread at a time; its nodes may be read by any.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compiler/ir/intrinsic.h"
#include "compiler/ir/type.h"

namespace kiln::ir {

enum class Op : uint8_t {
  // Leaves.
  // The value is int_value; the type is int*, uint* or bool.
  kInt,
  // The value is float_value; the type is float*.
  kFloat,
  // `id` is the number of the variable.
  kVar,
  // Arithmetic. Both operands have the type of the result.
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kFloorMod,
  kMin,
  kMax,
  // Comparisons. The result is a bool.
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  // Logic.
  kAnd,
  kOr,
  kNot,
  // Choices. The arguments are the condition, the value if true and the value if false.
  kSelect,
  kIf,
  // Conversion to `type`; scalar.h defines the result for fractions, NaN and numbers out of range.
  kCast,
  // The value whose bits are those of the operand, read as a value of `type`.
  kReinterpret,
  // `id` is the slot. The arguments are the indices, of type kIndex or of any other int type, which
  // is widened.
  kLoad,
  // `id` is the Intrinsic.
  kCall,
  // Operators on bits. Both operands have the type of the result.
  kBitAnd,
  kBitOr,
  kBitXor,
  kShl,
  kShr,
};

struct Node;
// Defined in compiler/ir/substitution.h.
struct Substitution;
using Expr = const Node*;

struct Node {
  Op op;
  Type type;
  uint16_t num_args = 0;
  // Used by kVar, kLoad and kCall.
  int32_t id = 0;
  union {
    int64_t int_value = 0;
    double float_value;
  };
  const Expr* args_begin = nullptr;
  // Structural hash: equal expressions of any two pools have equal hashes.
  uint64_t hash = 0;

  std::span<const Expr> args() const { return {args_begin, num_args}; }
  Expr arg(int i) const { return args_begin[i]; }
  Intrinsic intrinsic() const { return static_cast<Intrinsic>(id); }
  bool is_const_int() const { return op == Op::kInt; }
  bool is_const_int(int64_t value) const { return op == Op::kInt && int_value == value; }
};

// A bump allocator with an intern table. Making a node costs a few tens of nanoseconds.
//
// The functions that make nodes fold constants and the identities x+0, x-0, x*1, x*0, x//1, x%1,
// min(x,x), !!x, true&&x, ... on integers and bools (never on floats). All nodes of a pool are
// therefore folded, and a node that is printed and parsed is the same node again. On kIndex, shifts
// by constants become x * 2^n and x // 2^n, and x & 2^n - 1 becomes x % 2^n, so that indices stay
// affine. Sums, quotients and comparisons are simplified further by compiler/arith/simplify.h.
class ExprPool {
 public:
  ExprPool();
  ~ExprPool();
  ExprPool(const ExprPool&) = delete;
  ExprPool& operator=(const ExprPool&) = delete;

  Expr Int(int64_t value, Type type = kIndex);
  // Rounds the value to the type.
  Expr Float(double value, Type type = kFloat32);
  Expr Bool(bool value) { return Int(value ? 1 : 0, kBool); }
  Expr Var(int32_t id, Type type = kIndex);
  // `op` is kAdd .. kOr or kBitAnd .. kShr.
  Expr Binary(Op op, Expr a, Expr b);
  Expr Not(Expr a);
  Expr Select(Expr condition, Expr a, Expr b);
  Expr If(Expr condition, Expr a, Expr b);
  Expr Cast(Type type, Expr a);
  Expr Reinterpret(Type type, Expr a);
  Expr Load(int32_t slot, std::span<const Expr> indices, Type type);
  // The type is that of args[0].
  Expr Call(Intrinsic intrinsic, std::span<const Expr> args);

  Expr Add(Expr a, Expr b) { return Binary(Op::kAdd, a, b); }
  Expr Sub(Expr a, Expr b) { return Binary(Op::kSub, a, b); }
  Expr Mul(Expr a, Expr b) { return Binary(Op::kMul, a, b); }
  Expr Div(Expr a, Expr b) { return Binary(Op::kDiv, a, b); }
  Expr FloorDiv(Expr a, Expr b) { return Binary(Op::kFloorDiv, a, b); }
  Expr FloorMod(Expr a, Expr b) { return Binary(Op::kFloorMod, a, b); }
  Expr Min(Expr a, Expr b) { return Binary(Op::kMin, a, b); }
  Expr Max(Expr a, Expr b) { return Binary(Op::kMax, a, b); }
  Expr Lt(Expr a, Expr b) { return Binary(Op::kLt, a, b); }
  Expr Le(Expr a, Expr b) { return Binary(Op::kLe, a, b); }
  Expr Ge(Expr a, Expr b) { return Binary(Op::kGe, a, b); }
  Expr Eq(Expr a, Expr b) { return Binary(Op::kEq, a, b); }
  Expr And(Expr a, Expr b) { return Binary(Op::kAnd, a, b); }
  Expr Or(Expr a, Expr b) { return Binary(Op::kOr, a, b); }
  Expr BitAnd(Expr a, Expr b) { return Binary(Op::kBitAnd, a, b); }
  Expr BitOr(Expr a, Expr b) { return Binary(Op::kBitOr, a, b); }

  // Copies an expression of another pool. Returns an expression of this pool itself.
  Expr Import(Expr e);

  // Makes the same node with other arguments and folds it.
  Expr WithArgs(Expr e, std::span<const Expr> args);

  // Replaces variables and buffers in `e`, which may come from another pool. The replacements and
  // the result belong to this pool. Linear in the distinct nodes of `e`.
  Expr Substitute(Expr e, const Substitution& names);

  size_t num_nodes() const { return num_nodes_; }

  // Allocates `size` bytes, aligned to 8, that live as long as the pool. For other nodes
  // (statements).
  void* Allocate(size_t size);

 private:
  bool Owns(Expr e) const;
  Expr Intern(Op op, Type type, int32_t id, int64_t value_bits, std::span<const Expr> args);
  Expr FoldIntegers(Op op, Type type, Expr a, Expr b);
  Expr FoldBits(Op op, Type type, Expr a, Expr b);
  void GrowTable();

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  char* end_ = nullptr;
  // A hash table with open addressing.
  std::vector<Expr> table_;
  size_t num_nodes_ = 0;
};

// Compares the structure. The expressions may belong to different pools.
bool Equal(Expr a, Expr b);

bool IsComparison(Op op);
// True for kBitAnd .. kShr.
bool IsBits(Op op);
// True for kAdd .. kOr and kBitAnd .. kShr.
bool IsBinary(Op op);

}  // namespace kiln::ir
