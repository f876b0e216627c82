#include "compiler/codegen/null.h"

#include <gtest/gtest.h>

#include "compiler/codegen/program_builder_testing.h"

namespace kiln::codegen {
namespace {
ProgramBuilder MakeScale(double factor, int64_t extent) {
  ProgramBuilder b;
  const int X = b.Buffer("x", ir::Scope::kInput, {extent});
  const int Y = b.Buffer("y", ir::Scope::kOutput, {extent});
  const ir::Expr v = b.Var("v", extent);
  b.Kernel("scale", b.For(v, ir::LoopKind::kSerial,
                          b.Store(Y, {v}, b.Mul(b.Load(X, {v}), b.pool().Float(factor)))));
  return b;
}

TEST(NullTest, SameProgramSameBytes) {
  EXPECT_EQ(CompileNull(MakeScale(2, 8).program()).binary,
            CompileNull(MakeScale(2, 8).program()).binary);
}

TEST(NullTest, OtherProgramOtherBytes) {
  const std::string binary = CompileNull(MakeScale(2, 8).program()).binary;
  EXPECT_NE(binary, CompileNull(MakeScale(3, 8).program()).binary);
  EXPECT_NE(binary, CompileNull(MakeScale(2, 9).program()).binary);
}

TEST(NullTest, DescribesTheCall) {
  const Compiled compiled = CompileNull(MakeScale(2, 8).program());
  ASSERT_EQ(compiled.args.size(), 2u);
  EXPECT_EQ(compiled.args[1].name, "y");
  EXPECT_EQ(compiled.args[1].shape, std::vector<int64_t>{8});
  ASSERT_EQ(compiled.launches.size(), 1u);
  EXPECT_EQ(compiled.launches[0].symbol, "scale");
}
}  // namespace
}  // namespace kiln::codegen
