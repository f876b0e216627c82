// What LLVM is told of the buffers of a program. Internal: this header includes LLVM.
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

// Buffers are disjoint: each has an alias scope, which its accesses bear, in task functions too. An
// access names the other buffers of its kernel, and not those of the program: of a chain of
// thousands of kernels that would be millions.
class BufferAliases {
 public:
  BufferAliases(const ir::Program& program, llvm::Module& module);

  // From here on accesses are those of a kernel with these buffers.
  void Enter(std::span<const int32_t> slots);

  // An access to a buffer of the kernel; returns it.
  template <typename Instruction>
  Instruction* Tag(int32_t slot, Instruction* access) const {
    const auto i = static_cast<size_t>(slot);
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, scopes_[i]);
    if (others_[i] != nullptr) access->setMetadata(llvm::LLVMContext::MD_noalias, others_[i]);
    return access;
  }

 private:
  llvm::LLVMContext& context_;
  std::vector<llvm::MDNode*> scopes_;  // by slot
  // By slot: the scopes of the kernel's other buffers; null: there is none, or too many.
  std::vector<llvm::MDNode*> others_;
};

// A loaded pointer to a buffer: aligned to 64 bytes, and so many bytes may be read there (0: not
// known).
void AnnotatePointer(llvm::LoadInst* load, int64_t bytes);

// Memory on the stack for the whole call of the function, aligned to 64 bytes.
llvm::AllocaInst* EntryAlloca(llvm::Function& function, llvm::Type* type, const std::string& name);

}  // namespace kiln::codegen
