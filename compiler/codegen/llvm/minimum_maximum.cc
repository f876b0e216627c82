#include "compiler/codegen/llvm/minimum_maximum.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace kiln::codegen {
namespace {
using llvm::Value;

bool IsMinimumOrMaximum(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (call == nullptr) return false;
  const llvm::Type* scalar = call->getType()->getScalarType();
  return (call->getIntrinsicID() == llvm::Intrinsic::minimum ||
          call->getIntrinsicID() == llvm::Intrinsic::maximum) &&
         (scalar->isHalfTy() || scalar->isFloatTy() || scalar->isDoubleTy());
}

// Returns the number if v is the same number in all lanes. Null: v is anything else, or a NaN.
const llvm::ConstantFP* NumberOrNull(const Value* v) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (constant == nullptr) return nullptr;
  if (v->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  return number == nullptr || number->isNaN() ? nullptr : number;
}

class Writer {
 public:
  // Writes instructions for operands of `type` in front of the call.
  Writer(llvm::IntrinsicInst& call, llvm::Type* type)
      : b_(&call),
        is_max_(call.getIntrinsicID() == llvm::Intrinsic::maximum),
        type_(type),
        bits_(type_->getWithNewType(b_.getIntNTy(type_->getScalarSizeInBits()))) {}

  Value* Write(Value* a, Value* b) {
    if (a->getType() != type_) {
      Value* wide = Write(b_.CreateFPExt(a, type_), b_.CreateFPExt(b, type_));
      return b_.CreateFPTrunc(wide, a->getType());
    }
    if (NumberOrNull(b) != nullptr) std::swap(a, b);
    const llvm::ConstantFP* number = NumberOrNull(a);
    return number != nullptr ? WithNumber(number, b) : OfTwo(a, b);
  }

  // Writes instructions for three or more values. The values wait for each other only in the chain
  // of the minimum or maximum instructions themselves.
  Value* WriteAll(std::vector<Value*> leaves) {
    for (Value*& leaf : leaves) {
      if (leaf->getType() != type_) leaf = b_.CreateFPExt(leaf, type_);
    }
    // Values that a loop carries come last, so that the next iteration waits for few instructions.
    std::ranges::stable_partition(leaves, [](Value* v) { return !llvm::isa<llvm::PHINode>(v); });
    Value* extreme = leaves[0];
    Value* signs = b_.CreateBitCast(leaves[0], bits_);
    std::vector<Value*> may_be_nan;
    for (Value* leaf : leaves) {
      if (NumberOrNull(leaf) == nullptr) may_be_nan.push_back(leaf);
      if (leaf == leaves[0]) continue;
      extreme = Instruction(extreme, leaf);
      Value* bits = b_.CreateBitCast(leaf, bits_);
      signs = is_max_ ? b_.CreateAnd(signs, bits) : b_.CreateOr(signs, bits);
    }
    Value* is_nan = nullptr;
    for (size_t i = 0; i < may_be_nan.size(); i += 2) {
      Value* of_two =
          b_.CreateFCmpUNO(may_be_nan[i], may_be_nan[std::min(i + 1, may_be_nan.size() - 1)]);
      is_nan = is_nan == nullptr ? of_two : b_.CreateOr(is_nan, of_two);
    }
    Value* const sign =
        llvm::ConstantInt::get(bits_, llvm::APInt::getSignMask(bits_->getScalarSizeInBits()));
    Value* const magnitude = b_.CreateAnd(b_.CreateBitCast(extreme, bits_), b_.CreateNot(sign));
    Value* result = b_.CreateBitCast(b_.CreateOr(magnitude, b_.CreateAnd(signs, sign)), type_);
    if (is_nan == nullptr) return result;
    return b_.CreateSelect(is_nan, llvm::ConstantFP::getNaN(type_), result);
  }

 private:
  // Computes the instruction's result: b if an operand is NaN or both are zeros.
  Value* Instruction(Value* a, Value* b) {
    Value* first = is_max_ ? b_.CreateFCmpOGT(a, b) : b_.CreateFCmpOLT(a, b);
    return b_.CreateSelect(first, a, b);
  }

  // If x is a zero of the other sign than the extreme one, the result gets the sign of the number.
  Value* WithNumber(const llvm::ConstantFP* number, Value* x) {
    const bool is_other_zero = number->isZero() && number->isNegative() != is_max_;
    if (!is_other_zero) return Instruction(Splat(number->getValueAPF()), x);
    llvm::APFloat zero = number->getValueAPF();
    zero.changeSign();
    Value* y = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, Instruction(Splat(zero), x));
    return is_max_ ? y : b_.CreateFNeg(y);
  }

  Value* OfTwo(Value* a, Value* b) {
    Value* x = b_.CreateBitCast(Instruction(a, b), bits_);
    Value* y = b_.CreateBitCast(Instruction(b, a), bits_);
    if (!is_max_) return b_.CreateBitCast(b_.CreateOr(x, y), type_);
    Value* is_nan = b_.CreateFCmpUNO(a, b);
    if (!type_->isVectorTy()) {
      return b_.CreateSelect(is_nan, llvm::ConstantFP::getNaN(type_),
                             b_.CreateBitCast(b_.CreateAnd(x, y), type_));
    }
    Value* ones = llvm::Constant::getAllOnesValue(bits_);
    return b_.CreateBitCast(b_.CreateSelect(is_nan, ones, b_.CreateAnd(x, y)), type_);
  }

  Value* Splat(const llvm::APFloat& number) { return llvm::ConstantFP::get(type_, number); }

  llvm::IRBuilder<> b_;
  const bool is_max_;
  llvm::Type* const type_;
  llvm::Type* const bits_;
};

// True if the call's only use is as an operand of another such call in the same block, so that both
// belong to one tree.
bool IsInner(const llvm::IntrinsicInst& call) {
  if (!call.hasOneUse()) return false;
  const auto* user = llvm::dyn_cast<llvm::IntrinsicInst>(call.user_back());
  return user != nullptr && user->getIntrinsicID() == call.getIntrinsicID() &&
         user->getParent() == call.getParent() && IsMinimumOrMaximum(*user);
}

// Collects the tree of calls below this one: its leaves, and in `inner` the other calls. Each call
// comes before the calls that are its operands.
void Collect(llvm::IntrinsicInst& call, std::vector<Value*>& leaves,
             std::vector<llvm::IntrinsicInst*>& inner) {
  for (Value* operand : {call.getArgOperand(0), call.getArgOperand(1)}) {
    auto* below = llvm::dyn_cast<llvm::IntrinsicInst>(operand);
    if (below == nullptr || !IsMinimumOrMaximum(*below) || !IsInner(*below)) {
      leaves.push_back(operand);
      continue;
    }
    inner.push_back(below);
    Collect(*below, leaves, inner);
  }
}

void Replace(llvm::IntrinsicInst& root) {
  llvm::Type* const type = root.getType();
  llvm::Type* computed = type;
  if (type->getScalarType()->isHalfTy())
    computed = type->getWithNewType(llvm::Type::getFloatTy(root.getContext()));
  std::vector<Value*> leaves;
  std::vector<llvm::IntrinsicInst*> inner;
  Collect(root, leaves, inner);
  Writer writer(root, computed);
  Value* value = nullptr;
  if (leaves.size() == 2) {
    value = writer.Write(leaves[0], leaves[1]);
  } else {
    value = writer.WriteAll(std::move(leaves));
    if (computed != type) value = llvm::IRBuilder<>(&root).CreateFPTrunc(value, type);
  }
  root.replaceAllUsesWith(value);
  root.eraseFromParent();
  for (llvm::IntrinsicInst* call : inner) call->eraseFromParent();
}

}  // namespace

llvm::PreservedAnalyses MinimumMaximumPass::run(llvm::Function& function,
                                                llvm::FunctionAnalysisManager&) {
  if (!llvm::Triple(function.getParent()->getTargetTriple()).isX86())
    return llvm::PreservedAnalyses::all();
  std::vector<llvm::IntrinsicInst*> roots;
  for (llvm::BasicBlock& block : function) {
    for (llvm::Instruction& instruction : block) {
      if (!IsMinimumOrMaximum(instruction)) continue;
      auto& call = llvm::cast<llvm::IntrinsicInst>(instruction);
      if (!IsInner(call)) roots.push_back(&call);
    }
  }
  for (llvm::IntrinsicInst* root : roots) Replace(*root);
  if (roots.empty()) return llvm::PreservedAnalyses::all();
  llvm::PreservedAnalyses preserved;
  preserved.preserveSet<llvm::CFGAnalyses>();
  return preserved;
}

}  // namespace kiln::codegen
