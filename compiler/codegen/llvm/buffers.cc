#include "compiler/codegen/llvm/buffers.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include "compiler/codegen/llvm/prefetch_weights.h"

namespace kiln::codegen {
namespace {
// Kernels with more buffers get no such metadata, because the lists grow with the square.
constexpr size_t kMaxDisjointBuffers = 512;
}  // namespace

BufferAliases::BufferAliases(const ir::Program& program, llvm::Module& module)
    : context_(module.getContext()), others_(program.buffers.size()) {
  llvm::MDBuilder metadata(context_);
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain("kiln");
  for (const ir::Buffer& buffer : program.buffers) {
    llvm::MDNode* scope = metadata.createAnonymousAliasScope(domain, buffer.name);
    scopes_.push_back(llvm::MDNode::get(context_, {scope}));
    if (IsPrefetched(buffer)) {
      module.getOrInsertNamedMetadata(kPrefetchedScopes)->addOperand(scopes_.back());
    }
  }
}

void BufferAliases::Enter(std::span<const int32_t> slots) {
  const bool is_told = slots.size() > 1 && slots.size() <= kMaxDisjointBuffers;
  std::vector<llvm::Metadata*> scopes;
  for (const int32_t slot : slots)
    scopes.push_back(scopes_[static_cast<size_t>(slot)]->getOperand(0));
  for (size_t i = 0; i < slots.size(); ++i) {
    llvm::MDNode*& others_here = others_[static_cast<size_t>(slots[i])];
    others_here = nullptr;
    if (!is_told) continue;
    std::vector<llvm::Metadata*> others = scopes;
    others.erase(others.begin() + static_cast<ptrdiff_t>(i));
    others_here = llvm::MDNode::get(context_, others);
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
