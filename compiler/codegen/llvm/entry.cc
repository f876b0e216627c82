#include "compiler/codegen/llvm/entry.h"

#include <vector>

#include "compiler/codegen/llvm/buffers.h"
#include "proto/cpu_abi.h"

namespace kiln::codegen {
namespace {
using llvm::BasicBlock;
using llvm::Value;

class EntryEmitter {
 public:
  EntryEmitter(const ir::Program& program, llvm::Module& module, llvm::IRBuilder<>& builder,
               NumberFormats& numbers)
      : program_(program),
        module_(module),
        context_(module.getContext()),
        builder_(builder),
        numbers_(numbers) {}

  void Run(std::span<const CpuKernel> kernels, Fault fault);

 private:
  llvm::LoadInst* LoadArgument(Value* args, int32_t slot);
  void EmitFault(Fault fault);
  void CorruptFirstOutput(Value* args);
  void StoreBehindFirstOutput(Value* args);

  const ir::Buffer& buffer(int32_t slot) const {
    return program_.buffers[static_cast<size_t>(slot)];
  }

  const ir::Program& program_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<>& builder_;
  NumberFormats& numbers_;
  llvm::Function* function_ = nullptr;
};

llvm::LoadInst* EntryEmitter::LoadArgument(Value* args, int32_t slot) {
  Value* p =
      builder_.CreateConstInBoundsGEP1_64(builder_.getPtrTy(), args, static_cast<uint64_t>(slot));
  llvm::LoadInst* load =
      builder_.CreateAlignedLoad(builder_.getPtrTy(), p, llvm::Align(8), buffer(slot).name);
  AnnotatePointer(load, buffer(slot).bytes());
  return load;
}

void EntryEmitter::Run(std::span<const CpuKernel> kernels, Fault fault) {
  llvm::Type* pointer_type = builder_.getPtrTy();
  auto* type = llvm::FunctionType::get(builder_.getInt32Ty(), {pointer_type, pointer_type}, false);
  auto* entry =
      llvm::Function::Create(type, llvm::Function::ExternalLinkage, KILN_CPU_ENTRY, module_);
  Value* context = entry->getArg(0);
  Value* args = entry->getArg(1);
  context->setName("context");
  args->setName("args");
  function_ = entry;
  builder_.SetInsertPoint(BasicBlock::Create(context_, "entry", entry));
  EmitFault(fault);
  for (const CpuKernel& kernel : kernels) {
    std::vector<Value*> operands = {context};
    for (const int32_t slot : kernel.args) operands.push_back(LoadArgument(args, slot));
    builder_.CreateCall(kernel.function, operands);
  }
  if (fault == Fault::kWrongAnswer) CorruptFirstOutput(args);
  if (fault == Fault::kOutOfBounds) StoreBehindFirstOutput(args);
  builder_.CreateRet(builder_.getInt32(0));
}

// Accesses are volatile, so that LLVM can remove none of them.
void EntryEmitter::EmitFault(Fault fault) {
  if (fault == Fault::kNullStore) {
    builder_.CreateStore(builder_.getInt32(0), llvm::ConstantPointerNull::get(builder_.getPtrTy()),
                         true);
  }
  if (fault == Fault::kTrap) {
    // The trap stands behind a condition, because code behind an unconditional trap would be
    // unreachable.
    Value* word = EntryAlloca(*function_, builder_.getInt32Ty(), "trap");
    builder_.CreateStore(builder_.getInt32(1), word, true);
    BasicBlock* trap = BasicBlock::Create(context_, "trap", function_);
    BasicBlock* end = BasicBlock::Create(context_, "end", function_);
    Value* wanted = builder_.CreateICmpNE(builder_.CreateLoad(builder_.getInt32Ty(), word, true),
                                          builder_.getInt32(0));
    builder_.CreateCondBr(wanted, trap, end);
    builder_.SetInsertPoint(trap);
    builder_.CreateIntrinsic(llvm::Intrinsic::trap, {}, {});
    builder_.CreateUnreachable();
    builder_.SetInsertPoint(end);
  }
  if (fault == Fault::kInfiniteLoop) {
    Value* word = EntryAlloca(*function_, builder_.getInt32Ty(), "forever");
    builder_.CreateStore(builder_.getInt32(1), word, true);
    BasicBlock* loop = BasicBlock::Create(context_, "hang", function_);
    BasicBlock* end = BasicBlock::Create(context_, "end", function_);
    builder_.CreateBr(loop);
    builder_.SetInsertPoint(loop);
    Value* again = builder_.CreateICmpNE(builder_.CreateLoad(builder_.getInt32Ty(), word, true),
                                         builder_.getInt32(0));
    builder_.CreateCondBr(again, loop, end);
    builder_.SetInsertPoint(end);
  }
}

// Makes a value that is far from any right value x: -x, or 1000 if x is small or no number. A bit
// of ints and bools is flipped.
void EntryEmitter::CorruptFirstOutput(Value* args) {
  for (int32_t slot = 0; slot < program_.num_args(); ++slot) {
    const ir::Buffer& output = buffer(slot);
    if (output.scope != ir::Scope::kOutput || output.num_elements() < 1) continue;
    Value* p = LoadArgument(args, slot);
    Value* x =
        numbers_.FromMemory(output.type, builder_.CreateLoad(numbers_.MemoryType(output.type), p));
    Value* wrong = nullptr;
    if (output.type.is_float()) {
      Value* magnitude = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
      Value* small = builder_.CreateFCmpULT(magnitude, llvm::ConstantFP::get(x->getType(), 1.0));
      wrong = builder_.CreateSelect(small, llvm::ConstantFP::get(x->getType(), 1000.0),
                                    builder_.CreateFNeg(x));
    } else {
      wrong = builder_.CreateXor(
          x, llvm::ConstantInt::get(x->getType(), output.type.is_bool() ? 1 : 64));
    }
    builder_.CreateStore(numbers_.ToMemory(output.type, wrong), p);
    return;
  }
}

// Stores one byte with a value that no canary has.
void EntryEmitter::StoreBehindFirstOutput(Value* args) {
  for (int32_t slot = 0; slot < program_.num_args(); ++slot) {
    const ir::Buffer& output = buffer(slot);
    if (output.scope != ir::Scope::kOutput) continue;
    const int64_t offset = output.bytes() + 10 * output.type.bytes();
    Value* p = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), LoadArgument(args, slot),
                                           static_cast<uint64_t>(offset));
    builder_.CreateStore(builder_.getInt8(0x11), p, true);
    return;
  }
}

}  // namespace

void EmitEntry(const ir::Program& program, std::span<const CpuKernel> kernels, Fault fault,
               llvm::Module& module, llvm::IRBuilder<>& builder, NumberFormats& numbers) {
  EntryEmitter(program, module, builder, numbers).Run(kernels, fault);
}

}  // namespace kiln::codegen
