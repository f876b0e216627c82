// Emitter: kernels.
#include <utility>

#include "compiler/codegen/llvm/emit.h"
#include "compiler/codegen/used_slots.h"

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
      numbers_(builder_, features.half_convert),
      aliases_(program, module),
      pointers_(program.buffers.size()),
      stored_lanes_(program.buffers.size()),
      values_(program.vars.size()),
      known_(program.vars.size()),
      depths_(program.vars.size()),
      heads_(builder_) {
  // Fused multiply-add is allowed, nothing else is.
  llvm::FastMathFlags flags;
  flags.setAllowContract();
  builder_.setFastMathFlags(flags);
  for (const ir::LoopVar& var : program.vars) ranges_.push_back({0, var.extent - 1});
}

void Emitter::EmitProgram(Fault fault) {
  std::vector<CpuKernel> kernels;
  for (const ir::Kernel& kernel : program_.kernels) kernels.push_back(EmitKernel(kernel));
  EmitEntry(program_, kernels, fault, module_, builder_, numbers_);
}

// A kernel gets only the arguments that it uses: otherwise each of thousands of kernels would have
// thousands of arguments and alias scopes.
CpuKernel Emitter::EmitKernel(const ir::Kernel& kernel) {
  std::vector<int32_t> args = ArgumentsUsedBy(program_, kernel);
  aliases_.Enter(NamesUsedIn(kernel.body).slots);
  llvm::Type* pointer_type = builder_.getPtrTy();
  std::vector<llvm::Type*> types(args.size() + 1, pointer_type);
  auto* function =
      llvm::Function::Create(llvm::FunctionType::get(builder_.getVoidTy(), types, false),
                             llvm::Function::InternalLinkage, "kernel_" + kernel.name, module_);
  function->addFnAttr(llvm::Attribute::NoInline);
  const bool parallel = ContainsParallel(kernel.body);
  function->getArg(0)->setName("context");
  pointers_.assign(pointers_.size(), nullptr);
  for (size_t i = 0; i < args.size(); ++i) {
    const ir::Buffer& argument = buffer(args[i]);
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
    pointer(args[i]) = arg;
  }
  function_ = function;
  runtime_ = function->getArg(0);
  num_tasks_ = 0;
  BasicBlock* start = BasicBlock::Create(context_, "entry", function);
  heads_ = LoopHeads(builder_);
  heads_.Open(start);
  builder_.SetInsertPoint(start);
  EmitStmt(kernel.body);
  builder_.CreateRetVoid();
  return {function, std::move(args)};
}

}  // namespace kiln::codegen
