// Emitter: kernels, the entry function, faults.
#include <llvm/IR/MDBuilder.h>

#include "compiler/codegen/llvm_emit.h"
#include "proto/cpu_abi.h"

namespace kiln::codegen {
using llvm::BasicBlock;
using llvm::Value;

namespace {
bool ContainsParallel(ir::Stmt stmt) {
  if (stmt->kind == ir::StmtKind::kFor && stmt->loop_kind == ir::LoopKind::kParallel) return true;
  for (ir::Stmt child : stmt->children()) {
    if (ContainsParallel(child)) return true;
  }
  return false;
}
}  // namespace

Emitter::Emitter(const ir::Program& program, const CpuFeatures& features, llvm::Module& module)
    : program_(program),
      features_(features),
      module_(module),
      context_(module.getContext()),
      builder_(context_),
      pointers_(program.buffers.size()),
      stored_lanes_(program.buffers.size()),
      values_(program.vars.size()),
      known_(program.vars.size()),
      depths_(program.vars.size()) {
  // Fused multiply-add is allowed, nothing else is.
  llvm::FastMathFlags flags;
  flags.setAllowContract();
  builder_.setFastMathFlags(flags);
  for (const ir::LoopVar& var : program.vars) ranges_.push_back({0, var.extent - 1});
}

void Emitter::EmitProgram(Fault fault) {
  MakeAliasScopes();
  std::vector<llvm::Function*> kernels;
  for (const ir::Kernel& kernel : program_.kernels) kernels.push_back(EmitKernel(kernel));
  EmitEntry(kernels, fault);
}

void Emitter::MakeAliasScopes() {
  llvm::MDBuilder metadata(context_);
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain("kiln");
  std::vector<llvm::Metadata*> scopes;
  for (const ir::Buffer& buffer : program_.buffers) {
    scopes.push_back(metadata.createAnonymousAliasScope(domain, buffer.name));
  }
  for (size_t i = 0; i < scopes.size(); ++i) {
    std::vector<llvm::Metadata*> others = scopes;
    others.erase(others.begin() + static_cast<ptrdiff_t>(i));
    alias_scope_.push_back(llvm::MDNode::get(context_, {scopes[i]}));
    no_alias_.push_back(others.empty() ? nullptr : llvm::MDNode::get(context_, others));
  }
}

Value* Emitter::EntryAlloca(llvm::Type* type, const std::string& name) {
  llvm::BasicBlock& entry = function_->getEntryBlock();
  llvm::IRBuilder<> builder(&entry, entry.begin());
  llvm::AllocaInst* memory = builder.CreateAlloca(type, nullptr, name);
  memory->setAlignment(llvm::Align(64));
  return memory;
}

void Emitter::AnnotatePointer(llvm::LoadInst* load, int64_t bytes) {
  llvm::Type* i64 = builder_.getInt64Ty();
  const auto number = [&](uint64_t v) {
    return llvm::MDNode::get(context_,
                             llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(i64, v)));
  };
  load->setMetadata(llvm::LLVMContext::MD_nonnull, llvm::MDNode::get(context_, {}));
  load->setMetadata(llvm::LLVMContext::MD_noundef, llvm::MDNode::get(context_, {}));
  load->setMetadata(llvm::LLVMContext::MD_align, number(64));
  if (bytes > 0)
    load->setMetadata(llvm::LLVMContext::MD_dereferenceable, number(static_cast<uint64_t>(bytes)));
}

llvm::Function* Emitter::EmitKernel(const ir::Kernel& kernel) {
  const int num_args = program_.num_args();
  llvm::Type* pointer_type = builder_.getPtrTy();
  std::vector<llvm::Type*> types(static_cast<size_t>(num_args) + 1, pointer_type);
  auto* function =
      llvm::Function::Create(llvm::FunctionType::get(builder_.getVoidTy(), types, false),
                             llvm::Function::InternalLinkage, "kernel_" + kernel.name, module_);
  function->addFnAttr(llvm::Attribute::NoInline);
  const bool parallel = ContainsParallel(kernel.body);
  function->getArg(0)->setName("context");
  pointers_.assign(pointers_.size(), nullptr);
  for (int i = 0; i < num_args; ++i) {
    const ir::Buffer& argument = buffer(i);
    llvm::Argument* arg = function->getArg(static_cast<unsigned>(i) + 1);
    arg->setName(argument.name);
    arg->addAttr(llvm::Attribute::NoAlias);
    if (!parallel) arg->addAttr(llvm::Attribute::NoCapture);
    if (argument.scope == ir::Scope::kInput) arg->addAttr(llvm::Attribute::ReadOnly);
    arg->addAttr(llvm::Attribute::getWithAlignment(context_, llvm::Align(64)));
    if (argument.bytes() > 0) {
      arg->addAttr(llvm::Attribute::getWithDereferenceableBytes(
          context_, static_cast<uint64_t>(argument.bytes())));
    }
    pointer(i) = arg;
  }
  function_ = function;
  runtime_ = function->getArg(0);
  num_tasks_ = 0;
  BasicBlock* start = BasicBlock::Create(context_, "entry", function);
  scopes_.clear();
  scopes_.push_back({.block = start, .atoms = {}, .sums = {}, .products = {}, .pointers = {}});
  builder_.SetInsertPoint(start);
  EmitStmt(kernel.body);
  builder_.CreateRetVoid();
  return function;
}

llvm::LoadInst* Emitter::LoadArgument(Value* args, int32_t slot) {
  Value* p =
      builder_.CreateConstInBoundsGEP1_64(builder_.getPtrTy(), args, static_cast<uint64_t>(slot));
  llvm::LoadInst* load =
      builder_.CreateAlignedLoad(builder_.getPtrTy(), p, llvm::Align(8), buffer(slot).name);
  AnnotatePointer(load, buffer(slot).bytes());
  return load;
}

void Emitter::EmitEntry(const std::vector<llvm::Function*>& kernels, Fault fault) {
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
  std::vector<Value*> operands = {context};
  for (int i = 0; i < program_.num_args(); ++i) operands.push_back(LoadArgument(args, i));
  for (llvm::Function* kernel : kernels) builder_.CreateCall(kernel, operands);
  if (fault == Fault::kWrongAnswer) CorruptFirstOutput(args);
  if (fault == Fault::kOutOfBounds) StoreBehindFirstOutput(args);
  builder_.CreateRet(builder_.getInt32(0));
}

// Volatile: neither may be reasoned away.
void Emitter::EmitFault(Fault fault) {
  if (fault == Fault::kNullStore) {
    builder_.CreateStore(builder_.getInt32(0), llvm::ConstantPointerNull::get(builder_.getPtrTy()),
                         true);
  }
  if (fault == Fault::kTrap) {
    // Behind a condition: what follows a trap could not be reached.
    Value* word = EntryAlloca(builder_.getInt32Ty(), "trap");
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
    Value* word = EntryAlloca(builder_.getInt32Ty(), "forever");
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

// Far from the right value, whatever it is: -x, or 1000 where x is small or no number; ints and
// bools lose a bit.
void Emitter::CorruptFirstOutput(Value* args) {
  for (int32_t slot = 0; slot < program_.num_args(); ++slot) {
    const ir::Buffer& output = buffer(slot);
    if (output.scope != ir::Scope::kOutput || output.num_elements() < 1) continue;
    Value* p = LoadArgument(args, slot);
    Value* x = FromMemory(output.type, builder_.CreateLoad(MemoryType(output.type), p));
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
    builder_.CreateStore(ToMemory(output.type, wrong), p);
    return;
  }
}

// One byte that no canary has.
void Emitter::StoreBehindFirstOutput(Value* args) {
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

}  // namespace kiln::codegen
