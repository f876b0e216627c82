#include "compiler/codegen/llvm/minimum_maximum.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <vector>

#include "compiler/codegen/llvm/minimum_maximum_writer.h"

namespace kiln::codegen {
namespace {
using llvm::Value;

bool IsOfFloats(const llvm::Type* type) {
  const llvm::Type* scalar = type->getScalarType();
  return scalar->isHalfTy() || scalar->isFloatTy() || scalar->isDoubleTy();
}

bool IsMinimumOrMaximum(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (call == nullptr) return false;
  return (call->getIntrinsicID() == llvm::Intrinsic::minimum ||
          call->getIntrinsicID() == llvm::Intrinsic::maximum) &&
         IsOfFloats(call->getType());
}

bool IsReduction(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (call == nullptr) return false;
  if (call->getIntrinsicID() != llvm::Intrinsic::vector_reduce_fminimum &&
      call->getIntrinsicID() != llvm::Intrinsic::vector_reduce_fmaximum)
    return false;
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(call->getArgOperand(0)->getType());
  return vector != nullptr && std::has_single_bit(vector->getNumElements()) &&
         IsOfFloats(call->getType());
}

bool IsMax(const llvm::IntrinsicInst& call) {
  return call.getIntrinsicID() == llvm::Intrinsic::maximum ||
         call.getIntrinsicID() == llvm::Intrinsic::vector_reduce_fmaximum;
}

// True if the call's only use is as an operand of another such call in the same block, so that both
// belong to one tree.
bool IsInner(const llvm::IntrinsicInst& call) {
  if (!call.hasOneUse()) return false;
  const auto* user = llvm::dyn_cast<llvm::IntrinsicInst>(call.user_back());
  return user != nullptr && user->getIntrinsicID() == call.getIntrinsicID() &&
         user->getParent() == call.getParent() && IsMinimumOrMaximum(*user);
}

llvm::Type* ComputedType(llvm::Type* type) {
  return type->getScalarType()->isHalfTy()
             ? type->getWithNewType(llvm::Type::getFloatTy(type->getContext()))
             : type;
}

Value* Converted(Value* x, llvm::Type* type, llvm::Instruction& at) {
  return llvm::IRBuilder<>(&at).CreateFPCast(x, type);
}

// LLVM's machine scheduler, with its model of some processors, moves all gathers of a block to the
// block's beginning. Neighbouring gathers of one term often read the same cache lines: far from
// each other each of them misses the first cache, and the results are spilled. So many gathers
// stay in their order; LLVM 19 spills least with eight.
constexpr int kGathersInOrder = 8;

bool IsGather(const Value* leaf) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(leaf);
  return call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::masked_gather;
}

// A tree of calls, of which the root's result has other uses.
class Tree {
 public:
  Tree(const ExtremeTarget& target, llvm::IntrinsicInst& root)
      : root_(root),
        type_(ComputedType(root.getType())),
        writer_(target, IsMax(root), type_, root),
        calls_({&root}) {
    Collect(root);
    FindWholeVectors();
  }

  // Replaces the calls. Each is written where it stands, so that values live no longer than before.
  void Replace() {
    Value* result = leaves_.size() == 2 ? OfTwo() : OfAll();
    root_.replaceAllUsesWith(Converted(result, root_.getType(), root_));
    for (llvm::IntrinsicInst* call : calls_) call->eraseFromParent();
  }

 private:
  static llvm::IntrinsicInst* InnerOrNull(Value* operand) {
    auto* below = llvm::dyn_cast<llvm::IntrinsicInst>(operand);
    return below != nullptr && IsMinimumOrMaximum(*below) && IsInner(*below) ? below : nullptr;
  }

  // Lists the leaves and the calls. Each call comes before the calls that are its operands.
  void Collect(llvm::IntrinsicInst& call) {
    for (Value* operand : {call.getArgOperand(0), call.getArgOperand(1)}) {
      if (llvm::IntrinsicInst* below = InnerOrNull(operand)) {
        calls_.push_back(below);
        Collect(*below);
      } else {
        leaves_.push_back(operand);
      }
    }
  }

  // Finds vectors all of whose elements are leaves, one by one. Halves of such a vector are
  // combined instead.
  void FindWholeVectors() {
    std::map<Value*, std::set<uint64_t>> elements;
    std::vector<Value*> vectors;
    for (Value* leaf : leaves_) {
      auto* extract = llvm::dyn_cast<llvm::ExtractElementInst>(leaf);
      if (extract == nullptr) continue;
      const auto* lane = llvm::dyn_cast<llvm::ConstantInt>(extract->getIndexOperand());
      if (lane == nullptr) continue;
      std::set<uint64_t>& lanes = elements[extract->getVectorOperand()];
      if (lanes.empty()) vectors.push_back(extract->getVectorOperand());
      lanes.insert(lane->getZExtValue());
    }
    for (Value* vector : vectors) {
      const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(vector->getType());
      if (type != nullptr && std::has_single_bit(type->getNumElements()) &&
          type->getNumElements() > 2 && elements[vector].size() == type->getNumElements())
        whole_.push_back(vector);
    }
  }

  bool IsOfWholeVector(Value* leaf) const {
    const auto* extract = llvm::dyn_cast<llvm::ExtractElementInst>(leaf);
    return extract != nullptr && llvm::isa<llvm::ConstantInt>(extract->getIndexOperand()) &&
           std::ranges::find(whole_, extract->getVectorOperand()) != whole_.end();
  }

  Value* OfTwo() {
    return writer_.OfTwo(Converted(leaves_[0], type_, root_), Converted(leaves_[1], type_, root_));
  }

  Value* OfAll() {
    std::vector<llvm::IntrinsicInst*> calls = calls_;
    std::ranges::sort(calls, [](const auto* a, const auto* b) { return a->comesBefore(b); });
    Extreme all = writer_.None();
    int num_gathers = 0;
    std::vector<Value*> carried;
    for (llvm::IntrinsicInst* call : calls) {
      writer_.MoveTo(*call);
      for (Value* leaf : {call->getArgOperand(0), call->getArgOperand(1)}) {
        if (InnerOrNull(leaf) != nullptr || IsOfWholeVector(leaf)) continue;
        // Values that a loop carries come last, so that the next iteration waits for few
        // instructions.
        if (llvm::isa<llvm::PHINode>(leaf)) {
          carried.push_back(leaf);
          continue;
        }
        all = writer_.Combine(all, writer_.Term(Converted(leaf, type_, *call)));
        if (IsGather(leaf) && ++num_gathers % kGathersInOrder == 0) writer_.Pin(all);
      }
    }
    writer_.MoveTo(root_);
    for (Value* vector : whole_) {
      Value* computed = Converted(vector, ComputedType(vector->getType()), root_);
      all = writer_.Combine(all, writer_.Term(writer_.OfElements(computed)));
    }
    for (Value* value : carried)
      all = writer_.Combine(all, writer_.Term(Converted(value, type_, root_)));
    return writer_.Finish(all);
  }

  llvm::IntrinsicInst& root_;
  llvm::Type* const type_;
  ExtremeWriter writer_;
  std::vector<Value*> leaves_;
  std::vector<llvm::IntrinsicInst*> calls_;
  std::vector<Value*> whole_;
};

void ReplaceReduction(const ExtremeTarget& target, llvm::IntrinsicInst& call) {
  Value* vector = call.getArgOperand(0);
  llvm::Type* const type = ComputedType(vector->getType());
  ExtremeWriter writer(target, IsMax(call), type->getScalarType(), call);
  Value* result = writer.OfElements(Converted(vector, type, call));
  call.replaceAllUsesWith(Converted(result, call.getType(), call));
  call.eraseFromParent();
}

unsigned RegisterBits(const llvm::Function& function) {
  unsigned bits = 0;
  const llvm::Attribute width = function.getFnAttribute("prefer-vector-width");
  return width.isValid() && !width.getValueAsString().getAsInteger(10, bits) ? bits : 128;
}

}  // namespace

llvm::PreservedAnalyses MinimumMaximumPass::run(llvm::Function& function,
                                                llvm::FunctionAnalysisManager&) {
  if (!llvm::Triple(function.getParent()->getTargetTriple()).isX86())
    return llvm::PreservedAnalyses::all();
  std::vector<llvm::IntrinsicInst*> roots, reductions;
  for (llvm::BasicBlock& block : function) {
    for (llvm::Instruction& instruction : block) {
      if (IsReduction(instruction))
        reductions.push_back(&llvm::cast<llvm::IntrinsicInst>(instruction));
      if (!IsMinimumOrMaximum(instruction)) continue;
      auto& call = llvm::cast<llvm::IntrinsicInst>(instruction);
      if (!IsInner(call)) roots.push_back(&call);
    }
  }
  if (roots.empty() && reductions.empty()) return llvm::PreservedAnalyses::all();
  const ExtremeTarget target{.register_bits = RegisterBits(function), .has_masks = has_masks};
  for (llvm::IntrinsicInst* root : roots) Tree(target, *root).Replace();
  for (llvm::IntrinsicInst* reduction : reductions) ReplaceReduction(target, *reduction);
  llvm::PreservedAnalyses preserved;
  preserved.preserveSet<llvm::CFGAnalyses>();
  return preserved;
}

}  // namespace kiln::codegen
