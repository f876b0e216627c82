#include "compiler/codegen/llvm/prefetch_weights.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <vector>

namespace kiln::codegen {
namespace {

constexpr uint64_t kLineBytes = 64;
// Arguments of llvm.prefetch: a read of data into the second cache. The first cache is too small
// for data that are read so much later.
constexpr uint32_t kRead = 0, kSecondCache = 2, kData = 1;

bool IsOfPrefetchedInput(const llvm::LoadInst& load) {
  const llvm::MDNode* scopes = load.getMetadata(llvm::LLVMContext::MD_alias_scope);
  const llvm::NamedMDNode* prefetched = load.getModule()->getNamedMetadata(kPrefetchedScopes);
  return scopes != nullptr && prefetched != nullptr &&
         llvm::is_contained(prefetched->operands(), scopes);
}

void AddPrefetches(llvm::LoadInst& load) {
  llvm::IRBuilder<> builder(&load);
  const uint64_t bytes = load.getModule()->getDataLayout().getTypeStoreSize(load.getType());
  for (uint64_t line = 0; line < bytes; line += kLineBytes) {
    llvm::Value* ahead = builder.CreateConstGEP1_64(builder.getInt8Ty(), load.getPointerOperand(),
                                                    kPrefetchBytes + line);
    builder.CreateIntrinsic(
        llvm::Intrinsic::prefetch, {ahead->getType()},
        {ahead, builder.getInt32(kRead), builder.getInt32(kSecondCache), builder.getInt32(kData)});
  }
}

}  // namespace

bool IsPrefetched(const ir::Buffer& buffer) {
  return buffer.packing && buffer.bytes() >= kMinPrefetchedBytes;
}

llvm::PreservedAnalyses PrefetchWeightsPass::run(llvm::Function& function,
                                                 llvm::FunctionAnalysisManager&) {
  std::vector<llvm::LoadInst*> loads;
  for (llvm::BasicBlock& block : function) {
    for (llvm::Instruction& instruction : block) {
      auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      // Scalars are read if a tile is one element wide. A prefetch for each would cost as much as
      // the work.
      if (load != nullptr && load->getType()->isVectorTy() && IsOfPrefetchedInput(*load)) {
        loads.push_back(load);
      }
    }
  }
  for (llvm::LoadInst* load : loads) AddPrefetches(*load);
  return loads.empty() ? llvm::PreservedAnalyses::all() : llvm::PreservedAnalyses::none();
}

}  // namespace kiln::codegen
