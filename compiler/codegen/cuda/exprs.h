// The text of expressions and elements in a CUDA kernel. Internal to this folder.
//
//   * Addresses are flattened and simplified (compiler/arith/simplify.h).
//   * Index arithmetic is `int` wherever every intermediate value fits, proven node by node, and
//     `long long` elsewhere.
//   * Short floats are converted where they are computed with, not where they are only moved.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/arith/simplify.h"
#include "compiler/codegen/cuda/places.h"
#include "compiler/codegen/cuda/preamble.h"
#include "compiler/codegen/cuda/quotients.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/codegen/cuda/swizzle.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// How tightly a text binds.
enum class Precedence : int {
  kTernary,
  kOr,
  kAnd,
  kEquality,
  kRelation,
  kSum,
  kProduct,
  kUnary,
  kPrimary
};

struct CudaText {
  std::string text;
  Precedence precedence = Precedence::kPrimary;
  bool is_long = false;  // index arithmetic: long long, not int
};

// In parentheses unless it binds as tightly.
std::string Wrap(const CudaText& text, Precedence at_least);

// A pure function of the expression, the scope, and what was said to be in registers. Besides the
// text it notes what of the preamble the text needs, and the quotients in it.
//
// References are kept. One thread. Cost: the expression is simplified and written out as a tree; a
// budget bounds the nodes in all, for expressions that share parts may have trees without end.
class CudaExprs {
 public:
  CudaExprs(const ir::Program& program, const ir::Kernel& kernel,
            const std::vector<std::string>& buffer_names, const Swizzles& swizzles,
            CudaScope& scope, QuotientNames& quotients, CudaPreamble& preamble);

  const ir::Buffer& buffer(int32_t slot) const {
    return program_.buffers[static_cast<size_t>(slot)];
  }
  int32_t HintOf(int32_t stage, ir::Hint hint) const {
    return program_.stages[static_cast<size_t>(stage)].hints[hint];
  }
  const std::string& buffer_name(int32_t slot) const {
    return buffer_names_[static_cast<size_t>(slot)];
  }

  const Swizzle* SwizzleOrNull(int32_t slot) const {
    return codegen::SwizzleOrNull(swizzles_, slot);
  }

  // ---- of the program -> of the scope
  // Each part of a && b knows what those before it say.
  ir::Expr SimplifyCondition(ir::Expr condition);
  Place PlaceOf(int32_t slot, std::span<const ir::Expr> indices);
  arith::Linear IndexOf(ir::Expr index);

  // ---- text
  CudaText Print(ir::Expr e);            // of the program
  CudaText PrintRaw(ir::Expr e);         // of the program, as it is in memory
  CudaText PrintSimplified(ir::Expr e);  // of the scope
  CudaText PrintDivision(ir::Expr e);    // of the scope; written out though it has a name
  std::string Element(int32_t slot, const Place& place);  // name[offset]
  // The same, but that of a swizzled buffer its pieces are not permuted.
  std::string LineElement(int32_t slot, const Place& place);

  // ---- what is in registers
  // The load, a node of the program, is the value of this text as it is in memory, until all are
  // forgotten.
  void HoldLoad(ir::Expr load, std::string raw) { held_loads_[load] = std::move(raw); }
  bool IsHeld(ir::Expr load) const { return held_loads_.contains(load); }
  void ForgetLoads() { held_loads_.clear(); }
  // Each element of the buffer is this variable of the thread.
  void HoldBuffer(int32_t slot, std::string name) { held_buffers_[slot] = std::move(name); }
  const std::string* HeldBufferOrNull(int32_t slot) const;

  // Powers of 2 below 2^-126 become 0, which takes one instruction in place of several.
  void FlushPowers() { flushes_powers_ = true; }

  // ---- the budget, in nodes written out
  static constexpr int64_t kMaxNodes = 1 << 20;
  void RefillBudget() { budget_ = kMaxNodes; }
  bool is_exhausted() const { return budget_ < 0; }

 private:
  ir::Expr Simplify(ir::Expr e);
  arith::Linear ToLinear(ir::Expr e);
  ir::Expr KeepHeld(ir::Expr load);
  CudaText Child(ir::Expr e);
  CudaText PrintConstant(ir::Expr e);
  CudaText PrintBinary(ir::Expr e);
  CudaText PrintBits(ir::Expr e, const CudaText& a, const CudaText& b);
  CudaText PrintIndexBinary(ir::Expr e, CudaText a, CudaText b);
  CudaText PrintMinMax(ir::Expr e, const CudaText& a, const CudaText& b);
  CudaText PrintQuotient(ir::Expr e);
  CudaText PrintLogic(ir::Expr e);
  CudaText PrintCondition(ir::Expr choice, ir::Expr condition);
  using PrintFn = CudaText (CudaExprs::*)(ir::Expr);
  CudaText PrintChoice(ir::Expr e, PrintFn print_side);
  CudaText PrintCast(ir::Expr e);
  CudaText PrintReinterpreted(ir::Expr e);
  std::string PrintShort(ir::Type to, ir::Type from, CudaText value);
  CudaText PrintCall(ir::Expr e);
  CudaText PrintLoad(ir::Expr e);
  arith::Interval RangeOf(ir::Expr e);
  bool IsExactIn(ir::Type to, ir::Expr integer);
  std::string Permuted(const Swizzle& swizzle, const arith::Linear& offset);

  const ir::Program& program_;
  const std::vector<std::string>& buffer_names_;
  const Swizzles& swizzles_;
  CudaScope& scope_;
  QuotientNames& quotients_;
  CudaPreamble& preamble_;

  std::set<int32_t> cluster_vars_;  // which number the block in its cluster
  std::unordered_map<ir::Expr, std::string> held_loads_;
  // && and || are written as & and |: see data_conditions.h.
  bool evaluates_whole_ = false;
  std::unordered_map<int32_t, std::string> held_buffers_;
  bool flushes_powers_ = false;
  int64_t budget_ = kMaxNodes;
};

}  // namespace kiln::codegen
