// Facts about the buffers of a program for LLVM. Internal: this header includes LLVM.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Metadata.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/program.h"

namespace kiln::codegen {

// Tells LLVM that buffers are disjoint: each buffer has an alias scope, which all its accesses
// have, including those in task functions. An access names the other buffers of its kernel, not
// those of the program, which would be millions for a chain of thousands of kernels.
class BufferAliases {
 public:
  BufferAliases(const ir::Program& program, llvm::Module& module);

  // The following accesses belong to a kernel with these buffers.
  void Enter(std::span<const int32_t> slots);

  // Tags an access to a buffer of the kernel, and returns the access.
  template <typename Instruction>
  Instruction* Tag(int32_t slot, Instruction* access) const {
    const auto i = static_cast<size_t>(slot);
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, scopes_[i]);
    if (others_[i] != nullptr) access->setMetadata(llvm::LLVMContext::MD_noalias, others_[i]);
    return access;
  }

 private:
  llvm::LLVMContext& context_;
  // Indexed by slot.
  std::vector<llvm::MDNode*> scopes_;
  // Indexed by slot: the scopes of the kernel's other buffers. Null: there are none, or too many.
  std::vector<llvm::MDNode*> others_;
};

// Annotates a loaded pointer to a buffer: it is aligned to 64 bytes, and so many bytes may be read
// there (0: not known).
void AnnotatePointer(llvm::LoadInst* load, int64_t bytes);

// Allocates memory on the stack for the whole call of the function, aligned to 64 bytes.
llvm::AllocaInst* EntryAlloca(llvm::Function& function, llvm::Type* type, const std::string& name);

}  // namespace kiln::codegen
