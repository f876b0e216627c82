#include "compiler/codegen/llvm/buffers.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include "compiler/codegen/llvm/prefetch_weights.h"

namespace kiln::codegen {
BufferAliases::BufferAliases(const ir::Program& program, llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  llvm::MDBuilder metadata(context);
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain("kiln");
  std::vector<llvm::Metadata*> scopes;
  for (const ir::Buffer& buffer : program.buffers) {
    scopes.push_back(metadata.createAnonymousAliasScope(domain, buffer.name));
  }
  for (size_t i = 0; i < scopes.size(); ++i) {
    std::vector<llvm::Metadata*> others = scopes;
    others.erase(others.begin() + static_cast<ptrdiff_t>(i));
    scopes_.push_back(llvm::MDNode::get(context, {scopes[i]}));
    if (IsPrefetched(program.buffers[i])) {
      module.getOrInsertNamedMetadata(kPrefetchedScopes)->addOperand(scopes_.back());
    }
    others_.push_back(others.empty() ? nullptr : llvm::MDNode::get(context, others));
  }
}

void AnnotatePointer(llvm::LoadInst* load, int64_t bytes) {
  llvm::LLVMContext& context = load->getContext();
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  const auto number = [&](uint64_t v) {
    return llvm::MDNode::get(context,
                             llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(i64, v)));
  };
  load->setMetadata(llvm::LLVMContext::MD_nonnull, llvm::MDNode::get(context, {}));
  load->setMetadata(llvm::LLVMContext::MD_noundef, llvm::MDNode::get(context, {}));
  load->setMetadata(llvm::LLVMContext::MD_align, number(64));
  if (bytes > 0)
    load->setMetadata(llvm::LLVMContext::MD_dereferenceable, number(static_cast<uint64_t>(bytes)));
}

llvm::AllocaInst* EntryAlloca(llvm::Function& function, llvm::Type* type, const std::string& name) {
  llvm::BasicBlock& entry = function.getEntryBlock();
  llvm::IRBuilder<> builder(&entry, entry.begin());
  llvm::AllocaInst* memory = builder.CreateAlloca(type, nullptr, name);
  memory->setAlignment(llvm::Align(64));
  return memory;
}

}  // namespace kiln::codegen
