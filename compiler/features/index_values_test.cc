#include "compiler/features/index_values.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "compiler/arith/small_exprs_testing.h"

namespace kiln::features {
namespace {
using arith::Eval;
using arith::VarRange;
using ir::Expr;

// Two loops: variable 0 of 5 iterations around variable 1 of 3.
class IndexValuesTest : public testing::Test {
 protected:
  IndexValuesTest() {
    program_.pool = std::make_shared<ir::ExprPool>();
    program_.vars.resize(2);
    values_.emplace(program_);
  }

  void Begin() {
    const EnclosingLoop loops[] = {{0, kExtents[0], ir::LoopKind::kSerial},
                                   {1, kExtents[1], ir::LoopKind::kSerial}};
    values_->Begin(loops, {1, 1, 1});
  }

  static constexpr int64_t kExtents[] = {5, 3};
  ir::Program program_;
  std::optional<IndexValues> values_;
};

TEST_F(IndexValuesTest, RangesAndStepsOfAllSmallExpressions) {
  std::vector<Expr> exprs = arith::SmallExprs(*program_.pool, 2, 2);
  for (Expr a : arith::SmallExprs(*program_.pool, 2, 1)) {
    const Expr divisor = program_.pool->Add(program_.pool->Var(1), program_.pool->Int(1));
    exprs.push_back(program_.pool->FloorDiv(a, divisor));
    exprs.push_back(program_.pool->FloorMod(a, divisor));
  }
  for (Expr e : exprs) {
    Begin();
    const IndexValue value = values_->Of(e);
    for (int level = 0; level <= 2; ++level) {
      // The loops from `level` inward run.
      const VarRange ranges[] = {{0, level <= 0 ? kExtents[0] - 1 : 0},
                                 {0, level <= 1 ? kExtents[1] - 1 : 0}};
      const int64_t lo = value.at[values_->lo(level)], hi = value.at[values_->hi(level)];
      arith::ForAllValues(ranges, [&](std::span<const int64_t> vars) {
        ASSERT_LE(lo, Eval(e, vars)) << level;
        ASSERT_GE(hi, Eval(e, vars)) << level;
      });
      if (HasFatalFailure()) return;
    }
    const int64_t zero[] = {0, 0}, one[][2] = {{1, 0}, {0, 1}};
    ASSERT_EQ(value.at[values_->base()], Eval(e, zero));
    for (int loop = 0; loop < 2; ++loop)
      ASSERT_EQ(value.at[values_->step(loop)], Eval(e, one[loop])) << loop;
    values_->BeginSamples(0b11);
    ASSERT_EQ(values_->num_samples(), 15);
    const IndexValue samples = values_->Of(e);
    for (int i = 0; i < 15; ++i) {
      const int64_t vars[] = {i / 3, i % 3};
      ASSERT_EQ(samples.at[values_->sample(i)], Eval(e, vars)) << i;
    }
  }
}

TEST_F(IndexValuesTest, RangesThatAreTooLargeAreUnbounded) {
  Begin();
  ir::ExprPool& pool = *program_.pool;
  const Expr large = pool.Mul(pool.Var(0), pool.Int(int64_t{1} << 59));
  const auto range = [&](Expr e) {
    const IndexValue value = values_->Of(e);
    return arith::Interval{value.at[values_->lo(0)], value.at[values_->hi(0)]};
  };
  const arith::Interval from_zero{0, arith::kUnbounded};
  EXPECT_EQ(range(large), from_zero);
  EXPECT_EQ(range(pool.Add(large, large)), from_zero);
  EXPECT_EQ(range(pool.Sub(pool.Int(7), large)), (arith::Interval{-arith::kUnbounded, 7}));
  EXPECT_EQ(range(pool.FloorDiv(large, pool.Int(3))), from_zero);
  EXPECT_EQ(range(pool.FloorDiv(large, pool.Int(4))), from_zero);
  EXPECT_EQ(range(pool.FloorMod(large, pool.Int(10))), (arith::Interval{0, 9}));
  EXPECT_EQ(range(pool.Int(INT64_MAX)), (arith::Interval{arith::kEndLimit - 1, arith::kUnbounded}));
}

// Blocks around the threads of a warp: what an index of the block chooses is the same for all
// threads, and what an index of the thread chooses is not.
TEST_F(IndexValuesTest, DataAreTheSameAtTheSameIndices) {
  ir::Buffer chosen;
  chosen.shape = {64};
  chosen.type = ir::kInt32;
  chosen.index_limit = 1000;
  program_.buffers.push_back(chosen);
  const EnclosingLoop loops[] = {{0, 64, ir::LoopKind::kBlockX}, {1, 32, ir::LoopKind::kThreadX}};
  ir::ExprPool& pool = *program_.pool;
  const auto load = [&](Expr at) {
    const Expr index[] = {at};
    return pool.Load(0, index, ir::kInt32);
  };
  values_->Begin(loops, {32, 1, 1});
  const auto lanes = [&](Expr e) {
    const IndexValue value = values_->Of(e);
    std::vector<int64_t> of_lanes;
    for (int i = 0; i < values_->num_lanes(); ++i) of_lanes.push_back(value.at[values_->lane(i)]);
    return of_lanes;
  };
  const auto distinct = [](const std::vector<int64_t>& values) {
    return std::set<int64_t>(values.begin(), values.end()).size();
  };
  const std::vector<int64_t> of_block = lanes(load(pool.Var(0)));
  ASSERT_EQ(of_block.size(), 32u);
  EXPECT_EQ(distinct(of_block), 1u);
  EXPECT_EQ(distinct(lanes(load(load(pool.Var(0))))), 1u);
  EXPECT_GT(distinct(lanes(load(pool.Var(1)))), 24u);
  EXPECT_EQ(distinct(lanes(load(pool.FloorDiv(pool.Var(1), pool.Int(16))))), 2u);
  for (const int64_t value : lanes(load(pool.Var(1)))) {
    EXPECT_GE(value, 0);
    EXPECT_LT(value, 1000);
  }
  // The range is that of all data while the index runs, and one value once it is fixed.
  const IndexValue value = values_->Of(load(pool.Var(0)));
  EXPECT_EQ(value.at[values_->lo(0)], 0);
  EXPECT_EQ(value.at[values_->hi(0)], 999);
  EXPECT_EQ(value.at[values_->lo(1)], value.at[values_->base()]);
  EXPECT_EQ(value.at[values_->hi(1)], value.at[values_->base()]);
  EXPECT_EQ(value.at[values_->step(1)], value.at[values_->base()]);
}

}  // namespace
}  // namespace kiln::features
