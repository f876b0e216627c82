#include "compiler/codegen/llvm/transpose_loads.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>

#include <string>

#include "compiler/codegen/llvm/llvm_testing.h"

namespace kiln::codegen {
namespace {

struct Left {
  int scalar_loads = 0, row_loads = 0, inserts = 0;
  bool operator==(const Left&) const = default;
};
void PrintTo(const Left& left, std::ostream* out) {
  *out << left.scalar_loads << " scalar loads, " << left.row_loads << " loads of rows, "
       << left.inserts << " inserts";
}

// Makes a vector named %NAME of `lanes` elements `stride` bytes apart, the first at %p + offset.
std::string GatherText(const std::string& name, int lanes, int offset, int stride,
                       const std::string& type = "float") {
  std::string text;
  std::string vector = "poison";
  for (int l = 0; l < lanes; ++l) {
    const std::string id = fmt::format("{}.{}", name, l);
    text += fmt::format(
        "%p.{0} = getelementptr i8, ptr %p, i64 {1}\n"
        "%e.{0} = load {2}, ptr %p.{0}, align 4, !alias.scope !1\n",
        id, offset + l * stride, type);
    const std::string next = l + 1 == lanes ? name : "v." + id;
    text += fmt::format("%{} = insertelement <{} x {}> {}, {} %e.{}, i64 {}\n", next, lanes, type,
                        vector, type, id, l);
    vector = "%" + next;
  }
  return text;
}

std::string StoreText(const std::string& name, int lanes, int to, const std::string& type) {
  return fmt::format(
      "%q.{0} = getelementptr i8, ptr %q, i64 {2}\n"
      "store <{1} x {3}> %{0}, ptr %q.{0}, align 4, !alias.scope !2\n",
      name, lanes, to, type);
}

// Returns the loads and inserts of a body after the pass. !1 and !2 are two buffers.
Left LeftOf(const std::string& body) {
  llvm::LLVMContext context;
  const auto module = ParseWithScopes(
      "declare void @unknown()\n"
      "define void @f(ptr %p, ptr %q) {\n" +
          body + "ret void\n}\n",
      context);
  if (module == nullptr) return {};
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::Function& function = *module->getFunction("f");
  TransposeLoadsPass().run(function, functions);
  EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
  Left left;
  for (const llvm::BasicBlock& block : function) {
    for (const llvm::Instruction& i : block) {
      left.inserts += llvm::isa<llvm::InsertElementInst>(i);
      if (llvm::isa<llvm::LoadInst>(i))
        ++(i.getType()->isVectorTy() ? left.row_loads : left.scalar_loads);
    }
  }
  return left;
}

std::string Columns(int count, int lanes, int first = 0, const std::string& type = "float") {
  std::string text;
  for (int c = 0; c < count; ++c) {
    const std::string name = fmt::format("c{}", first + c);
    text += GatherText(name, lanes, (first + c) * 4, 3072, type);
  }
  for (int c = 0; c < count; ++c)
    text += StoreText(fmt::format("c{}", first + c), lanes, (first + c) * 256, type);
  return text;
}

TEST(TransposeLoadsTest, FourNeighboursAreRowsOfFour) {
  for (const int lanes : {4, 8, 16, 24, 28, 64}) {
    EXPECT_EQ(LeftOf(Columns(4, lanes)), (Left{.row_loads = lanes})) << lanes;
  }
  EXPECT_EQ(LeftOf(Columns(4, 16, 0, "i32")), (Left{.row_loads = 16}));
}

TEST(TransposeLoadsTest, OfMoreThanFourTheRestStays) {
  EXPECT_EQ(LeftOf(Columns(8, 16)), (Left{.row_loads = 32}));
  EXPECT_EQ(LeftOf(Columns(6, 16)), (Left{.scalar_loads = 32, .row_loads = 16, .inserts = 32}));
  EXPECT_EQ(LeftOf(Columns(3, 16)), (Left{.scalar_loads = 48, .inserts = 48}));
}

TEST(TransposeLoadsTest, AnyOrderOfTheColumns) {
  std::string text;
  for (const int c : {2, 0, 3, 1}) text += GatherText(fmt::format("c{}", c), 16, c * 4, 3072);
  for (int c = 0; c < 4; ++c) text += StoreText(fmt::format("c{}", c), 16, c * 64, "float");
  EXPECT_EQ(LeftOf(text), (Left{.row_loads = 16}));
}

TEST(TransposeLoadsTest, WhatIsGatheredTwiceIsLoadedOnce) {
  std::string text = Columns(4, 16);
  for (int c = 0; c < 4; ++c) {
    text += GatherText(fmt::format("again{}", c), 16, c * 4, 3072);
    text += StoreText(fmt::format("again{}", c), 16, 4096 + c * 64, "float");
  }
  EXPECT_EQ(LeftOf(text), (Left{.row_loads = 16}));
}

TEST(TransposeLoadsTest, ColumnsApartStay) {
  std::string text;
  for (const int c : {0, 2, 4, 6}) text += GatherText(fmt::format("c{}", c), 16, c * 4, 3072);
  for (const int c : {0, 2, 4, 6}) text += StoreText(fmt::format("c{}", c), 16, c * 64, "float");
  EXPECT_EQ(LeftOf(text), (Left{.scalar_loads = 64, .inserts = 64}));
}

TEST(TransposeLoadsTest, OddLanesStay) {
  EXPECT_EQ(LeftOf(Columns(4, 7)), (Left{.scalar_loads = 28, .inserts = 28}));
}

// A store between may change the elements of a later column. A store to another buffer may not.
TEST(TransposeLoadsTest, StoresBetween) {
  const auto with = [](const std::string& between) {
    return LeftOf(Columns(2, 16) + between + Columns(2, 16, 2));
  };
  EXPECT_EQ(with(""), (Left{.row_loads = 16}));
  EXPECT_EQ(with("store float 1.0, ptr %p, !alias.scope !1\n"),
            (Left{.scalar_loads = 64, .inserts = 64}));
  EXPECT_EQ(with("store float 1.0, ptr %p\n"), (Left{.scalar_loads = 64, .inserts = 64}));
  EXPECT_EQ(with("call void @unknown()\n"), (Left{.scalar_loads = 64, .inserts = 64}));
}

// After LLVM has expanded a loop, the columns have pointers of their own.
TEST(TransposeLoadsTest, PointersOfAnExpandedLoop) {
  std::string text = "%i = ptrtoint ptr %q to i64\n";
  for (int c = 0; c < 4; ++c) {
    std::string gather = GatherText(fmt::format("c{}", c), 16, 0, 3072);
    const std::string base = fmt::format("%b{}", c);
    for (size_t at; (at = gather.find("ptr %p,")) != std::string::npos;)
      gather.replace(at, 7, fmt::format("ptr {},", base));
    text +=
        fmt::format("%i{0} = add nsw i64 %i, {0}\n{1} = getelementptr float, ptr %p, i64 %i{0}\n",
                    c, base) +
        gather;
  }
  for (int c = 0; c < 4; ++c) text += StoreText(fmt::format("c{}", c), 16, c * 64, "float");
  EXPECT_EQ(LeftOf(text), (Left{.row_loads = 16}));
}

}  // namespace
}  // namespace kiln::codegen
