// Index arithmetic at the heads of loops. Internal: this header includes LLVM.
//
// Index arithmetic is emitted once, at the head of the innermost loop that it depends on: an
// unrolled body of hundreds of accesses must not repeat it hundreds of times.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "compiler/ir/expr.h"

namespace kiln::codegen {

// The open loops of a function, from outermost to innermost. Depth 0 is the function itself. The
// head of a loop is the start of its body. A value is made once for each depth and key, and ends
// with the loop.
class LoopHeads {
 public:
  using Make = llvm::function_ref<llvm::Value*()>;

  explicit LoopHeads(llvm::IRBuilder<>& builder) : builder_(&builder) {}

  // Opens a loop whose body begins with `block`. `last` is the last instruction of the head. Null:
  // the head is empty.
  void Open(llvm::BasicBlock* block, llvm::Instruction* last = nullptr) {
    scopes_.push_back({.block = block, .last = last});
  }
  void Close() { scopes_.pop_back(); }
  // Depth of the innermost loop.
  int depth() const { return static_cast<int>(scopes_.size()) - 1; }

  // Emits the result of `make` at the head of the loop of that depth, behind earlier instructions.
  llvm::Value* Emit(int depth, Make make);

  // Atoms are told apart by the values of expanded variables too.
  llvm::Value* Atom(int depth, ir::Expr atom, std::vector<int64_t> known, Make make);
  llvm::Value* Sum(int depth, llvm::Value* a, llvm::Value* b, Make make);
  llvm::Value* Product(int depth, llvm::Value* a, llvm::Value* b, Make make);
  llvm::Value* Pointer(int depth, int32_t slot, llvm::Value* index, Make make);

 private:
  struct Scope {
    llvm::BasicBlock* block;
    llvm::Instruction* last = nullptr;
    std::map<std::pair<ir::Expr, std::vector<int64_t>>, llvm::Value*> atoms = {};
    std::map<std::pair<llvm::Value*, llvm::Value*>, llvm::Value*> sums = {}, products = {};
    std::map<std::pair<int32_t, llvm::Value*>, llvm::Value*> pointers = {};
  };

  template <typename Values>
  llvm::Value* Once(int depth, Values Scope::* values, typename Values::key_type key, Make make);

  llvm::IRBuilder<>* builder_;
  std::vector<Scope> scopes_;
};

}  // namespace kiln::codegen
