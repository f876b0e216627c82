#include "compiler/codegen/llvm/block_memory.h"

#include <gtest/gtest.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Verifier.h>

#include <string>

#include "compiler/codegen/llvm/llvm_testing.h"

namespace kiln::codegen {
namespace {

struct Left {
  int loads = 0, stores = 0;
  bool operator==(const Left&) const = default;
};
void PrintTo(const Left& left, std::ostream* out) {
  *out << left.loads << " loads, " << left.stores << " stores";
}

// Returns the loads and stores of a body after the pass. !1 and !2 are two buffers, with accesses
// at %p, at %q, which may be %p + i, and at %r.
Left LeftOf(const std::string& body) {
  llvm::LLVMContext context;
  const auto module = ParseWithScopes(
      "declare void @llvm.masked.store.v4f32.p0(<4 x float>, ptr, i32, <4 x i1>)\n"
      "declare void @unknown()\n"
      "define float @f(ptr %p, ptr %q, ptr %r, float %a, float %b, <4 x i1> %m) {\n" +
          body + "}\n",
      context);
  if (module == nullptr) return {-1, -1};
  llvm::Function& function = *module->getFunction("f");
  llvm::FunctionAnalysisManager analyses;
  BlockMemoryPass().run(function, analyses);
  EXPECT_FALSE(llvm::verifyFunction(function));
  Left left;
  for (const llvm::BasicBlock& block : function) {
    for (const llvm::Instruction& instruction : block) {
      left.loads += llvm::isa<llvm::LoadInst>(instruction);
      left.stores += llvm::isa<llvm::StoreInst>(instruction);
    }
  }
  return left;
}

constexpr char kStoreP[] = "  store float %a, ptr %p, !alias.scope !1\n";
constexpr char kStorePAgain[] = "  store float %b, ptr %p, !alias.scope !1\n";
constexpr char kLoadP[] = "  %x = load float, ptr %p, !alias.scope !1\n  ret float %x\n";

TEST(BlockMemoryTest, ForwardsAndDrops) {
  EXPECT_EQ(LeftOf(std::string(kStoreP) + kLoadP), (Left{0, 1}));
  EXPECT_EQ(LeftOf(std::string(kStoreP) + kStorePAgain + kLoadP), (Left{0, 1}));
  EXPECT_EQ(LeftOf("  %y = load float, ptr %p, !alias.scope !1\n"
                   "  store float %y, ptr %r, !alias.scope !2\n" +
                   std::string(kLoadP)),
            (Left{1, 1}));
}

// Hundreds of accesses lie between the two: further than LLVM looks.
TEST(BlockMemoryTest, LooksFar) {
  std::string body;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 300; ++i) {
      const std::string n = std::to_string(round) + "_" + std::to_string(i);
      body += "  %p" + n + " = getelementptr float, ptr %p, i64 " + std::to_string(i) + "\n";
      body += "  %x" + n + " = load float, ptr %p" + n + ", !alias.scope !1\n";
      body += "  %y" + n + " = fadd float %x" + n + ", %a\n";
      body += "  store float %y" + n + ", ptr %p" + n + ", !alias.scope !1\n";
    }
  }
  EXPECT_EQ(LeftOf(body + "  ret float 0.0\n"), (Left{300, 300}));
}

TEST(BlockMemoryTest, AnotherPointerIntoTheBufferMayBeTheSamePlace) {
  EXPECT_EQ(LeftOf(std::string(kStoreP) + "  store float %b, ptr %q, !alias.scope !1\n" + kLoadP),
            (Left{1, 2}));
  EXPECT_EQ(LeftOf(std::string(kStoreP) + "  %y = load float, ptr %q, !alias.scope !1\n" +
                   "  store float %y, ptr %p, !alias.scope !1\n  ret float 0.0\n"),
            (Left{1, 2}));
}

TEST(BlockMemoryTest, AnotherBufferIsAnotherPlace) {
  EXPECT_EQ(LeftOf(std::string(kStoreP) + "  store float %b, ptr %r, !alias.scope !2\n" + kLoadP),
            (Left{0, 2}));
}

TEST(BlockMemoryTest, PartsOverlap) {
  const std::string wide = "  store <4 x float> zeroinitializer, ptr %p, !alias.scope !1\n";
  const std::string third =
      "  %t = getelementptr float, ptr %p, i64 2\n  store float %a, ptr %t, !alias.scope !1\n";
  const std::string read =
      "  %v = load <4 x float>, ptr %p, !alias.scope !1\n"
      "  %x = extractelement <4 x float> %v, i64 0\n  ret float %x\n";
  EXPECT_EQ(LeftOf(wide + read), (Left{0, 1}));
  EXPECT_EQ(LeftOf(wide + third + read), (Left{1, 2}));
  // The pass does not see this, because it keeps parts of places.
  EXPECT_EQ(LeftOf(third + wide + "  ret float 0.0\n"), (Left{0, 2}));
  EXPECT_EQ(LeftOf(wide + third + kLoadP), (Left{1, 2}));
}

TEST(BlockMemoryTest, OtherTypeIsLoaded) {
  EXPECT_EQ(LeftOf(std::string(kStoreP) + "  %i = load i32, ptr %p, !alias.scope !1\n"
                                          "  %x = sitofp i32 %i to float\n  ret float %x\n"),
            (Left{1, 1}));
}

TEST(BlockMemoryTest, WhatIsNotPlainIsABarrier) {
  const std::string masked =
      "  call void @llvm.masked.store.v4f32.p0(<4 x float> zeroinitializer, ptr %q, i32 4, <4 x "
      "i1> %m)";
  EXPECT_EQ(LeftOf(kStoreP + masked + ", !alias.scope !1\n" + kLoadP), (Left{1, 1}));
  EXPECT_EQ(LeftOf(kStoreP + masked + ", !alias.scope !2\n" + kLoadP), (Left{0, 1}));
  EXPECT_EQ(LeftOf(kStoreP + masked + "\n" + kLoadP), (Left{1, 1}));
  EXPECT_EQ(LeftOf(std::string(kStoreP) + "  call void @unknown()\n" + kStorePAgain + kLoadP),
            (Left{0, 2}));
  EXPECT_EQ(LeftOf(std::string(kStoreP) + "  store volatile float %a, ptr %r\n" + kLoadP),
            (Left{1, 2}));
  EXPECT_EQ(LeftOf(std::string(kStoreP) + "  store float %a, ptr %q\n" + kLoadP), (Left{1, 2}));
}

}  // namespace
}  // namespace kiln::codegen
