#include "compiler/codegen/llvm/prefetch_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>

#include <string>
#include <vector>

#include "compiler/codegen/llvm/llvm_testing.h"

namespace kiln::codegen {
namespace {
using testing::ElementsAre;
using testing::IsEmpty;

// Returns the distances behind %w that the pass prefetches in a body. !1 marks accesses to a
// prefetched input. The last entry for a broken module is -1.
std::vector<int64_t> PrefetchedOffsets(const std::string& body) {
  llvm::LLVMContext context;
  const auto module = ParseWithScopes(
      "define void @f(ptr %w, ptr %x) {\n" + body + "ret void\n}\n!kiln.prefetched = !{!1}\n",
      context);
  if (module == nullptr) return {-1};
  llvm::Function& function = *module->getFunction("f");
  llvm::FunctionAnalysisManager analyses;
  PrefetchWeightsPass().run(function, analyses);
  std::vector<int64_t> offsets;
  for (const llvm::Instruction& instruction : function.getEntryBlock()) {
    const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (call == nullptr || call->getIntrinsicID() != llvm::Intrinsic::prefetch) continue;
    llvm::APInt offset(64, 0);
    const llvm::Value* base = call->getArgOperand(0)->stripAndAccumulateConstantOffsets(
        module->getDataLayout(), offset, /*AllowNonInbounds=*/true);
    EXPECT_EQ(base->getName(), "w");
    offsets.push_back(offset.getSExtValue());
  }
  if (llvm::verifyModule(*module, &llvm::errs())) offsets.push_back(-1);
  return offsets;
}

TEST(PrefetchWeightsTest, OneForEachLineOfALoad) {
  EXPECT_THAT(PrefetchedOffsets("%v = load <16 x float>, ptr %w, align 64, !alias.scope !1\n"),
              ElementsAre(kPrefetchBytes));
  EXPECT_THAT(PrefetchedOffsets("%p = getelementptr i8, ptr %w, i64 256\n"
                                "%v = load <32 x float>, ptr %p, align 64, !alias.scope !1\n"),
              ElementsAre(kPrefetchBytes + 256, kPrefetchBytes + 320));
}

TEST(PrefetchWeightsTest, LeavesOtherLoadsAlone) {
  EXPECT_THAT(PrefetchedOffsets("%v = load <16 x float>, ptr %x, align 64, !alias.scope !2\n"
                                "%u = load <16 x float>, ptr %x, align 64\n"
                                "%s = load float, ptr %w, align 4, !alias.scope !1\n"
                                "store <16 x float> %v, ptr %w, align 64, !alias.scope !1\n"),
              IsEmpty());
}

TEST(PrefetchWeightsTest, LargePackedInputsOnly) {
  ir::Buffer buffer{.name = "w", .type = {ir::TypeCode::kFloat, 32}, .shape = {256, 128}};
  EXPECT_FALSE(IsPrefetched(buffer));
  buffer.packing = Packing{.shape = {128, 256}, .dims = {{1, 256, 1}, {0, 128, 1}}};
  EXPECT_TRUE(IsPrefetched(buffer));
  buffer.shape = {256, 127};
  EXPECT_FALSE(IsPrefetched(buffer));
}

}  // namespace
}  // namespace kiln::codegen
