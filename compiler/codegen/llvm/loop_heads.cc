#include "compiler/codegen/llvm/loop_heads.h"

namespace kiln::codegen {
using llvm::Value;

Value* LoopHeads::Emit(int depth, Make make) {
  Scope& scope = scopes_[static_cast<size_t>(depth)];
  const llvm::IRBuilderBase::InsertPointGuard insert_point(*builder_);
  // Code is inserted before this instruction, or at the end of the block. The guard may restore an
  // insertion point at that same end.
  llvm::Instruction* next = scope.last == nullptr
                                ? (scope.block->empty() ? nullptr : &scope.block->front())
                                : scope.last->getNextNode();
  if (next == nullptr) {
    builder_->SetInsertPoint(scope.block);
  } else {
    builder_->SetInsertPoint(next);
  }
  Value* v = make();
  llvm::Instruction* end = next == nullptr ? nullptr : next->getPrevNode();
  if (next == nullptr && !scope.block->empty()) end = &scope.block->back();
  if (end != nullptr) scope.last = end;
  return v;
}

template <typename Values>
Value* LoopHeads::Once(int depth, Values Scope::* values, typename Values::key_type key,
                       Make make) {
  Values& made = scopes_[static_cast<size_t>(depth)].*values;
  const auto [it, is_new] = made.try_emplace(std::move(key), nullptr);
  if (is_new) it->second = Emit(depth, make);
  return it->second;
}

Value* LoopHeads::Atom(int depth, ir::Expr atom, std::vector<int64_t> known, Make make) {
  return Once(depth, &Scope::atoms, {atom, std::move(known)}, make);
}

Value* LoopHeads::Sum(int depth, Value* a, Value* b, Make make) {
  return Once(depth, &Scope::sums, {a, b}, make);
}

Value* LoopHeads::Product(int depth, Value* a, Value* b, Make make) {
  return Once(depth, &Scope::products, {a, b}, make);
}

Value* LoopHeads::Pointer(int depth, int32_t slot, Value* index, Make make) {
  return Once(depth, &Scope::pointers, {slot, index}, make);
}

}  // namespace kiln::codegen
