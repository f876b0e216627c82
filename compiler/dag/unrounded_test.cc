#include "compiler/dag/unrounded.h"

#include <gtest/gtest.h>

#include <array>

namespace kiln::dag {
namespace {

using ir::Expr;

class UnroundedTest : public testing::Test {
 protected:
  Expr Load(ir::Type type) { return pool_.Load(0, std::array{pool_.Var(0)}, type); }
  Expr Half(double value) { return pool_.Float(value, ir::kFloat16); }
  Expr Float(double value) { return pool_.Float(value); }
  Expr AsHalf(Expr e) { return pool_.Cast(ir::kFloat16, e); }
  Expr AsFloat(Expr e) { return pool_.Cast(ir::kFloat32, e); }

  ir::ExprPool pool_;
};

TEST_F(UnroundedTest, KeepsTheDigitsBetweenTheParts) {
  const Expr sum = Load(ir::kFloat32);
  const Expr rounded = AsFloat(pool_.Add(pool_.Mul(AsHalf(sum), Half(0.5)), Load(ir::kFloat16)));
  EXPECT_EQ(Unrounded(pool_, rounded),
            pool_.Add(pool_.Mul(sum, Float(0.5)), AsFloat(Load(ir::kFloat16))));
}

TEST_F(UnroundedTest, ChoosesAndCallsInFloat32) {
  const Expr sum = Load(ir::kFloat32), first = pool_.Lt(pool_.Var(0), pool_.Int(3));
  const std::array half = {AsHalf(sum)}, whole = {sum};
  EXPECT_EQ(Unrounded(pool_, AsFloat(pool_.Select(first, AsHalf(sum), Half(-1)))),
            pool_.Select(first, sum, Float(-1)));
  EXPECT_EQ(Unrounded(pool_, pool_.Call(ir::Intrinsic::kTanh, half)),
            pool_.Call(ir::Intrinsic::kTanh, whole));
}

TEST_F(UnroundedTest, LeavesOtherTypesAlone) {
  const Expr wide = pool_.Mul(Load(ir::kFloat64), pool_.Float(2, ir::kFloat64));
  EXPECT_EQ(Unrounded(pool_, wide), wide);
  const Expr whole = pool_.Cast(ir::kInt32, Load(ir::kFloat32));
  EXPECT_EQ(Unrounded(pool_, AsHalf(whole)), AsFloat(whole));
}

TEST_F(UnroundedTest, ScaledLoads) {
  const Expr load = Load(ir::kFloat16);
  const auto scaled =
      AsScaledLoad(pool_.Div(AsFloat(pool_.Mul(Half(3), AsHalf(AsFloat(load)))), Float(4)));
  ASSERT_TRUE(scaled.has_value());
  EXPECT_EQ(scaled->load, load);
  EXPECT_EQ(scaled->scale, 0.75);
  EXPECT_EQ(AsScaledLoad(load)->scale, 1);
  EXPECT_FALSE(AsScaledLoad(pool_.Add(load, load)).has_value());
  EXPECT_FALSE(AsScaledLoad(pool_.Mul(load, load)).has_value());
  EXPECT_FALSE(AsScaledLoad(pool_.Div(Half(3), load)).has_value());
  EXPECT_FALSE(AsScaledLoad(AsFloat(pool_.Cast(ir::kInt32, load))).has_value());
}

}  // namespace
}  // namespace kiln::dag
