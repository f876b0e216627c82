// Writes minimum and maximum of IEEE 754-2019 by the instructions that x86 has. Internal: this
// header includes LLVM.
//
// An instruction gives its second operand if an operand is NaN or if both are zeros. So
// r = max(a, b) needs care for a NaN in a, and for a +0 in a beside a -0 in b. The sign of a zero
// is mended without a comparison: the sign of a maximum is the and of the signs of its terms, the
// sign of a minimum the or.
//
//   max(c, x), c a constant     max(c, x) gives x if x is NaN. If c is +0, -0 is used instead of it
//                               and the sign is cleared, so that -0 becomes +0.
//   min(a, b)                   min(a, b) | min(b, a): the two differ if an operand is NaN, and
//                               all bits of a NaN's exponent stay set, and for zeros of two signs,
//                               which become -0.
//   max(a, b)                   With mask registers: a if a is NaN, else max(a, b) without its sign
//                               where a has none. Otherwise max(a, b) & max(b, a), which makes +0
//                               of zeros of two signs, and all bits if an operand is NaN.
//   max(max(a, b), c), ...      r = max(a, b), s = max(r, c), ...: an instruction for each term,
//                               which can read the term from memory. A NaN of b is in r, that of c
//                               in s, so that a, r, s and so on tell of all terms. Comparisons of
//                               two of them each find NaN; the ands of their signs give the sign.
//                               The last result needs no comparison: it is NaN itself.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <vector>

namespace kiln::codegen {

// The terms of a tree that were combined so far, in one register.
struct ExtremePart {
  // The result of the instructions; null: there were no terms.
  llvm::Value* value = nullptr;
  // Tells whether a NaN may be in `value` that no comparison has found.
  bool is_open = false;
  // The and (or) of signs, as ints; a sign lies in the highest bit, and other bits have no meaning.
  llvm::Value* signs = nullptr;
  // False in lanes that have met a NaN; null: there was no comparison.
  llvm::Value* is_ordered = nullptr;
  // A value that waits for another one to be compared with; null: there is none.
  llvm::Value* waiting = nullptr;
};

using Extreme = std::vector<ExtremePart>;

// The machine that code is written for.
struct ExtremeTarget {
  // The width of vector registers.
  unsigned register_bits = 128;
  // Comparisons write mask registers, and other instructions read them.
  bool has_masks = false;
};

// Writes minima or maxima of one type, in front of an instruction.
class ExtremeWriter {
 public:
  // `type` is float, double or a vector of them. The instruction stays the caller's.
  ExtremeWriter(const ExtremeTarget& target, bool is_max, llvm::Type* type, llvm::Instruction& at);

  // Continues in front of another instruction.
  void MoveTo(llvm::Instruction& at) { b_.SetInsertPoint(&at); }

  // The minimum or maximum of two values.
  llvm::Value* OfTwo(llvm::Value* a, llvm::Value* b);
  // That of all elements of a vector of 2, 4, 8 ... elements; the writer's type is ignored.
  llvm::Value* OfElements(llvm::Value* vector);

  // Trees: one term, no term, the combination of two sets of terms, and the result.
  Extreme Term(llvm::Value* x);
  Extreme None() const { return Extreme(num_pieces_); }
  Extreme Combine(const Extreme& a, const Extreme& b);
  llvm::Value* Finish(Extreme extreme);
  // Keeps LLVM's machine scheduler from moving instructions across this place: the terms so far are
  // read before it, further ones behind it. Does nothing where the target has no masks.
  void Pin(Extreme& extreme);

 private:
  unsigned Lanes() const;
  llvm::Value* Piece(llvm::Value* x, unsigned piece);
  llvm::Value* Joined(std::vector<llvm::Value*> pieces);
  llvm::Value* AsVector(llvm::Value* piece);
  llvm::Value* Bits(llvm::Value* piece);
  llvm::Value* Instruction(llvm::Value* a, llvm::Value* b);
  llvm::Value* MergedSigns(llvm::Value* a, llvm::Value* b);
  llvm::Value* WithNumber(const llvm::ConstantFP* number, llvm::Value* x);
  llvm::Value* BothWays(llvm::Value* a, llvm::Value* b);
  ExtremePart CombineParts(ExtremePart a, ExtremePart b);
  void Observe(ExtremePart& part, llvm::Value* x);
  void Compare(ExtremePart& part, llvm::Value* a, llvm::Value* b);
  llvm::Value* FinishPart(ExtremePart part);

  llvm::IRBuilder<> b_;
  const ExtremeTarget target_;
  const bool is_max_;
  llvm::Type* const type_;
  // The type of a piece that one register holds: a scalar if type_ is one.
  llvm::Type* piece_;
  unsigned num_pieces_ = 1;
  // The vectors that pieces are compared in, and the ints of their bits.
  llvm::FixedVectorType* compared_;
  llvm::Type* bits_;
};

}  // namespace kiln::codegen
