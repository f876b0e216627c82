#include "compiler/dag/check_body.h"

#include <random>

#include "base/status_testing.h"
#include "compiler/ir/evaluate.h"

namespace kiln::dag {
namespace {

using arith::Interval;
using ir::Expr;

class CheckBodyTest : public testing::Test {
 protected:
  // Checks a body that reads one int or float input of shape [extent] at `index`, over axes i (10)
  // and j (4).
  std::string Check(Expr body, std::vector<std::vector<int64_t>> shapes,
                    ir::Type type = ir::kFloat32) {
    const std::vector<ir::Type> types(shapes.size(), type);
    auto error = CheckBody(body, extents_, types, shapes);
    return error ? error->message : "";
  }
  Expr Load(std::vector<Expr> index, ir::Type type = ir::kFloat32) {
    return pool_.Load(0, index, type);
  }
  Expr Int(int64_t v) { return pool_.Int(v); }

  ir::ExprPool pool_;
  const std::vector<int64_t> extents_ = {10, 4};
  Expr i_ = pool_.Var(0), j_ = pool_.Var(1);
  Expr zero_ = pool_.Float(0);
};

TEST_F(CheckBodyTest, Ranges) {
  auto range = [&](Expr e) { return RangeOf(e, extents_); };
  EXPECT_EQ(range(pool_.Sub(i_, pool_.Mul(j_, Int(3)))), (Interval{-9, 9}));
  // The two i cancel each other.
  EXPECT_EQ(range(pool_.Sub(pool_.Add(i_, j_), i_)), (Interval{0, 3}));
  EXPECT_EQ(range(pool_.FloorDiv(pool_.Sub(i_, Int(5)), Int(2))), (Interval{-3, 2}));
  EXPECT_EQ(range(pool_.FloorMod(i_, Int(4))), (Interval{0, 3}));
  EXPECT_EQ(range(pool_.FloorMod(pool_.Add(j_, Int(8)), Int(4))), (Interval{0, 3}));
  EXPECT_EQ(range(pool_.FloorMod(pool_.Add(j_, Int(16)), Int(100))), (Interval{16, 19}));
  EXPECT_EQ(range(pool_.Mul(pool_.Sub(i_, Int(5)), pool_.Sub(j_, Int(1)))), (Interval{-10, 8}));
  EXPECT_EQ(range(pool_.Max(pool_.Sub(i_, Int(3)), Int(0))), (Interval{0, 6}));
  EXPECT_EQ(range(pool_.If(pool_.Lt(i_, Int(3)), i_, Int(7))), (Interval{0, 7}));
  EXPECT_EQ(range(pool_.Mul(pool_.Mul(i_, Int(int64_t{1} << 40)), Int(int64_t{1} << 40))),
            arith::kEverything);
}

TEST_F(CheckBodyTest, GuardsSharpenBounds) {
  Expr sum = pool_.Add(i_, j_);
  Expr load = Load({pool_.Sub(sum, Int(2))});
  Expr inside = pool_.And(pool_.Ge(sum, Int(2)), pool_.Lt(sum, Int(10)));
  EXPECT_THAT(Check(load, {{8}}), testing::HasSubstr("reaches -2, axis 0 has extent 8"));
  EXPECT_EQ(Check(pool_.If(inside, load, zero_), {{8}}), "");
  EXPECT_EQ(Check(pool_.If(pool_.Not(inside), zero_, load), {{8}}), "");
  EXPECT_THAT(Check(pool_.If(inside, zero_, load), {{8}}), testing::HasSubstr("reaches"));
  EXPECT_THAT(Check(pool_.If(pool_.Ge(sum, Int(2)), load, zero_), {{8}}),
              testing::HasSubstr("reaches 10"));
  EXPECT_THAT(Check(pool_.Select(inside, load, zero_), {{8}}), testing::HasSubstr("reaches"));
  EXPECT_THAT(
      Check(pool_.If(pool_.Or(pool_.Ge(sum, Int(2)), pool_.Lt(sum, Int(10))), load, zero_), {{8}}),
      testing::HasSubstr("reaches"));
}

TEST_F(CheckBodyTest, GuardsOfMultiplesRoundInwards) {
  // 2 <= 3i <= 14 leaves i in 1..4.
  Expr triple = pool_.Mul(i_, Int(3));
  Expr guard = pool_.And(pool_.Ge(triple, Int(2)), pool_.Le(triple, Int(14)));
  EXPECT_EQ(Check(pool_.If(guard, Load({pool_.Sub(i_, Int(1))}), zero_), {{4}}), "");
  EXPECT_THAT(Check(pool_.If(guard, Load({pool_.Sub(i_, Int(1))}), zero_), {{3}}),
              testing::HasSubstr("reaches 3"));
}

TEST_F(CheckBodyTest, GuardsOfSumsBoundTheirMultiplesAndSumsWithThem) {
  Expr sum = pool_.Add(i_, pool_.Mul(j_, Int(10)));
  Expr guard = pool_.Lt(sum, Int(25));
  Expr twice = pool_.Add(pool_.Mul(i_, Int(2)), pool_.Mul(j_, Int(20)));
  EXPECT_EQ(Check(pool_.If(guard, Load({twice}), zero_), {{49}}), "");
  EXPECT_THAT(Check(pool_.If(guard, Load({twice}), zero_), {{48}}),
              testing::HasSubstr("reaches 48"));
  EXPECT_EQ(Check(pool_.If(guard, Load({pool_.Add(sum, pool_.Mul(j_, j_))}), zero_), {{34}}), "");
}

// The program computes in int32, where 2 * 2^30 is -2^31.
TEST_F(CheckBodyTest, NarrowArithmeticMayWrapAround) {
  Expr large = pool_.Int(1 << 30, ir::kInt32);
  Expr wraps = pool_.FloorDiv(pool_.Mul(pool_.Cast(ir::kInt32, i_), large), large);
  EXPECT_EQ(RangeOf(wraps, extents_), (Interval{-2, 1}));
  EXPECT_THAT(Check(Load({wraps}), {{10}}), testing::HasSubstr("reaches -2"));
  Expr fits = pool_.Add(pool_.Cast(ir::kInt32, i_), pool_.Int(5, ir::kInt32));
  EXPECT_EQ(Check(Load({fits}), {{15}}), "");
}

// A number that is added does not bring an unknown end nearer to the known values.
TEST_F(CheckBodyTest, UnknownStaysUnknown) {
  Expr far = pool_.Sub(Load({i_}, ir::kInt64), Int(5));
  EXPECT_EQ(RangeOf(far, extents_), arith::kEverything);
  EXPECT_EQ(RangeOf(pool_.FloorDiv(far, Int(1000)), extents_), arith::kEverything);
  EXPECT_EQ(RangeOf(pool_.Max(far, Int(3)), extents_), (Interval{3, arith::kUnbounded}));
}

// A number of 2^63 or more does not fit in an int64, and nothing is concluded from its bits.
TEST_F(CheckBodyTest, LargeUnsignedNumbers) {
  const Expr large = pool_.Int(-6, ir::kUInt64), one = pool_.Int(1, ir::kUInt64);
  const Expr x = pool_.Cast(ir::kUInt64, i_);
  EXPECT_EQ(RangeOf(x, extents_), (Interval{0, 9}));
  EXPECT_EQ(RangeOf(pool_.Cast(ir::kIndex, pool_.Add(x, one)), extents_), (Interval{1, 10}));
  const Expr wraps = pool_.Cast(ir::kIndex, pool_.Sub(x, one));
  EXPECT_EQ(RangeOf(wraps, extents_), arith::kEverything);
  const Expr chosen = pool_.Select(pool_.Lt(j_, Int(2)), one, large);
  EXPECT_EQ(RangeOf(pool_.Cast(ir::kIndex, pool_.Max(chosen, one)), extents_), arith::kEverything);
  EXPECT_EQ(Check(pool_.FloorDiv(Load({i_}, ir::kUInt64), pool_.Max(x, one)), {{10}}, ir::kUInt64),
            "");
  // The condition is true, so the load that it guards is checked.
  EXPECT_THAT(Check(pool_.If(pool_.Lt(x, large), Load({Int(99)}), zero_), {{4}}),
              testing::HasSubstr("reaches 99"));
  EXPECT_EQ(
      Check(pool_.If(pool_.Lt(Load({i_}, ir::kUInt64), pool_.Int(4, ir::kUInt64)),
                     Load({pool_.Cast(ir::kIndex, Load({i_}, ir::kUInt64))}, ir::kUInt64), one),
            {{10}}, ir::kUInt64),
      "");
}

TEST_F(CheckBodyTest, ExpressionsThatAreNeverEvaluatedMayBeWrong) {
  Expr never = pool_.And(pool_.Lt(i_, Int(3)), pool_.Binary(ir::Op::kGt, i_, Int(5)));
  EXPECT_EQ(Check(pool_.If(never, Load({Int(99)}), zero_), {{4}}), "");
}

TEST_F(CheckBodyTest, IndicesFromInputs) {
  const ir::Expr inner = Load({i_}, ir::kInt32);
  const Expr args[] = {inner};
  EXPECT_EQ(Check(pool_.Load(1, args, ir::kInt32), {{10}, {5}}, ir::kInt32), "");
  const Expr shifted[] = {pool_.Add(inner, pool_.Int(1, ir::kInt32))};
  EXPECT_THAT(Check(pool_.Load(1, shifted, ir::kInt32), {{10}, {5}}, ir::kInt32),
              testing::HasSubstr("clamp it"));
  const Expr clamped[] = {
      pool_.Max(pool_.Min(shifted[0], pool_.Int(4, ir::kInt32)), pool_.Int(0, ir::kInt32))};
  EXPECT_EQ(Check(pool_.Load(1, clamped, ir::kInt32), {{10}, {5}}, ir::kInt32), "");
}

TEST_F(CheckBodyTest, Refusals) {
  EXPECT_THAT(Check(pool_.Var(2), {}),
              testing::HasSubstr("variable 2 is used but there are only 2 axes"));
  EXPECT_THAT(Check(Load({i_, j_}), {{10}}), testing::HasSubstr("has 1 dimension, got 2 indices"));
  EXPECT_THAT(Check(Load({i_}), {}), testing::HasSubstr("load of input 0 but there are only 0"));
  EXPECT_THAT(Check(Load({i_}, ir::kFloat16), {{10}}),
              testing::HasSubstr("is read as float16 but holds float32"));
  EXPECT_THAT(Check(pool_.FloorDiv(i_, j_), {}), testing::HasSubstr("may be 0"));
  EXPECT_THAT(Check(pool_.Mul(pool_.Mul(i_, Int(int64_t{1} << 40)), Int(int64_t{1} << 40)), {}),
              testing::HasSubstr("can overflow"));
}

// The range holds every value that the expression takes.
TEST_F(CheckBodyTest, RandomRangesAreSound) {
  const uint64_t seed = 97;
  std::mt19937_64 rng(seed);
  for (int round = 0; round < 3000; ++round) {
    std::vector<Expr> known = {i_, j_, Int(static_cast<int64_t>(rng() % 9) - 4),
                               Int(static_cast<int64_t>(rng() % 30))};
    for (int step = 0; step < 6; ++step) {
      Expr a = known[rng() % known.size()], b = known[rng() % known.size()];
      const Expr divisor = Int(static_cast<int64_t>(1 + rng() % 6));
      switch (rng() % 9) {
        case 0:
          known.push_back(pool_.Add(a, b));
          break;
        case 1:
          known.push_back(pool_.Sub(a, b));
          break;
        case 2:
          known.push_back(pool_.Mul(a, b));
          break;
        case 3:
          known.push_back(pool_.FloorDiv(a, divisor));
          break;
        case 4:
          known.push_back(pool_.FloorMod(a, divisor));
          break;
        case 5:
          known.push_back(pool_.Min(a, b));
          break;
        case 6:
          known.push_back(pool_.Max(a, b));
          break;
        case 7:
          known.push_back(pool_.If(pool_.Lt(a, b), a, known[rng() % known.size()]));
          break;
        default:
          known.push_back(pool_.Select(pool_.Eq(a, b), b, known[rng() % known.size()]));
          break;
      }
    }
    const Interval range = RangeOf(known.back(), extents_);
    ir::CompiledExpr compiled(known.back());
    for (int64_t i = 0; i < extents_[0]; ++i) {
      for (int64_t j = 0; j < extents_[1]; ++j) {
        const ir::Value vars[] = {ir::Value::Int(i), ir::Value::Int(j)};
        ir::Value value;
        ASSERT_OK(compiled.Run(vars, nullptr, &value));
        ASSERT_GE(value.i, range.lo)
            << "seed " << seed << " round " << round << " at " << i << ", " << j;
        ASSERT_LE(value.i, range.hi)
            << "seed " << seed << " round " << round << " at " << i << ", " << j;
      }
    }
  }
}

}  // namespace
}  // namespace kiln::dag
