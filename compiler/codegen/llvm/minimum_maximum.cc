#include "compiler/codegen/llvm/minimum_maximum.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

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

// One number, in all lanes; null: something else.
const llvm::ConstantFP* NumberOrNull(const Value* v) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (constant == nullptr) return nullptr;
  if (v->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  return number == nullptr || number->isNaN() ? nullptr : number;
}

class Writer {
 public:
  // Of operands of that type, in front of the call.
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

 private:
  // The instruction: b where either is NaN or both are zeros.
  Value* Instruction(Value* a, Value* b) {
    Value* first = is_max_ ? b_.CreateFCmpOGT(a, b) : b_.CreateFCmpOLT(a, b);
    return b_.CreateSelect(first, a, b);
  }

  // Zeros that x wins against though it is not the extreme one get the sign that the number has.
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

}  // namespace

llvm::PreservedAnalyses MinimumMaximumPass::run(llvm::Function& function,
                                                llvm::FunctionAnalysisManager&) {
  if (!llvm::Triple(function.getParent()->getTargetTriple()).isX86())
    return llvm::PreservedAnalyses::all();
  std::vector<llvm::IntrinsicInst*> calls;
  for (llvm::BasicBlock& block : function) {
    for (llvm::Instruction& instruction : block) {
      if (IsMinimumOrMaximum(instruction))
        calls.push_back(llvm::cast<llvm::IntrinsicInst>(&instruction));
    }
  }
  for (llvm::IntrinsicInst* call : calls) {
    llvm::Type* type = call->getType();
    if (type->getScalarType()->isHalfTy())
      type = type->getWithNewType(llvm::Type::getFloatTy(function.getContext()));
    call->replaceAllUsesWith(
        Writer(*call, type).Write(call->getArgOperand(0), call->getArgOperand(1)));
    call->eraseFromParent();
  }
  if (calls.empty()) return llvm::PreservedAnalyses::all();
  llvm::PreservedAnalyses preserved;
  preserved.preserveSet<llvm::CFGAnalyses>();
  return preserved;
}

}  // namespace kiln::codegen
