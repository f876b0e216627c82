#include "compiler/arith/simplify.h"

#include <gtest/gtest.h>

#include <random>

#include "compiler/arith/small_exprs_testing.h"
#include "compiler/ir/integer_ops.h"

namespace kiln::arith {
namespace {
using ir::Expr;
using ir::ExprPool;
using ir::kIndex;
using ir::kInt8;
using ir::Op;

struct Generator {
  ExprPool& pool;
  std::mt19937_64& rng;
  int num_vars;

  int64_t Pick(int64_t n) { return static_cast<int64_t>(rng() % n); }

  Expr Int(int depth) {
    if (depth == 0 || Pick(5) == 0)
      return Pick(3) == 0 ? pool.Int(Pick(12) - 4) : pool.Var(Pick(num_vars));
    Expr a = Int(depth - 1);
    switch (Pick(12)) {
      case 10: {
        const Op ops[] = {Op::kBitAnd, Op::kBitOr, Op::kBitXor};
        return pool.Binary(ops[Pick(3)], a, Int(depth - 1));
      }
      case 11:
        return pool.Binary(Pick(2) ? Op::kShl : Op::kShr, a, pool.Int(Pick(4)));
      case 0:
      case 1:
        return pool.Add(a, Int(depth - 1));
      case 2:
        return pool.Sub(a, Int(depth - 1));
      case 3:
        return pool.Mul(a, pool.Int(Pick(9) - 2));
      case 4:
        return pool.FloorDiv(a, pool.Int(Pick(8) + 1));
      case 5:
        return pool.FloorMod(a, pool.Int(Pick(8) + 1));
      case 6:
        return pool.Min(a, Int(depth - 1));
      case 7:
        return pool.Max(a, Int(depth - 1));
      case 8:
        return pool.Cast(kIndex, Narrow(a, Int(depth - 1)));
      default:
        return pool.Select(Bool(depth - 1), a, Int(depth - 1));
    }
  }

  // Makes arithmetic in 8 bits, some of which wraps around.
  Expr Narrow(Expr a, Expr b) {
    const Op ops[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kMin, Op::kBitAnd, Op::kBitXor};
    const ir::Type type = Pick(2) ? kInt8 : ir::kUInt8;
    return pool.Binary(ops[Pick(6)], pool.Cast(type, a), pool.Cast(type, b));
  }

  Expr Bool(int depth) {
    if (depth == 0 || Pick(3) > 0) {
      const Op op = static_cast<Op>(static_cast<int>(Op::kEq) + Pick(6));
      return pool.Binary(op, Int(depth), Int(depth));
    }
    if (Pick(3) == 0) return pool.Not(Bool(depth - 1));
    return pool.Binary(Pick(2) ? Op::kAnd : Op::kOr, Bool(depth - 1), Bool(depth - 1));
  }
};

TEST(Simplify, RandomExpressionsKeepTheirValueAndRange) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 rng(seed);
    ExprPool pool;
    Simplifier simplifier(pool);
    std::vector<VarRange> ranges;
    for (int i = 0; i < 3; ++i) {
      ranges.push_back({0, static_cast<int64_t>(rng() % 7)});
      simplifier.AddVar(ranges.back().hi + 1);
    }
    Generator generate{pool, rng, 3};
    const Expr e = rng() % 4 == 0 ? generate.Bool(3) : generate.Int(4);
    const Expr simple = simplifier.Simplify(e);
    const bool is_int = e->type == kIndex;
    const Interval range = is_int ? simplifier.RangeOf(simplifier.ToLinear(e)) : Interval{0, 1};
    ForAllValues(ranges, [&](std::span<const int64_t> values) {
      const int64_t want = Eval(e, values);
      ASSERT_EQ(Eval(simple, values), want);
      ASSERT_GE(want, range.lo);
      ASSERT_LE(want, range.hi);
    });
    if (testing::Test::HasFatalFailure()) return;
    EXPECT_TRUE(
        ir::Equal(simplifier.Simplify(simple), simplifier.Simplify(simplifier.Simplify(simple))));
  }
}

TEST(Simplify, AllSmallExpressionsKeepTheirValueAndRange) {
  ExprPool pool;
  Simplifier simplifier(pool);
  const VarRange ranges[] = {{0, 4}, {0, 2}};
  for (const VarRange& range : ranges) simplifier.AddVar(range.hi + 1);
  for (Expr e : SmallExprs(pool, 2, 2)) {
    const Linear sum = simplifier.ToLinear(e);
    const Expr simple = simplifier.ToExpr(sum);
    const Interval range = simplifier.RangeOf(sum), range_of_expr = simplifier.RangeOf(simple);
    ForAllValues(ranges, [&](std::span<const int64_t> values) {
      const int64_t want = Eval(e, values);
      ASSERT_EQ(Eval(simple, values), want);
      ASSERT_TRUE(range.Contains(want) && range_of_expr.Contains(want));
      ASSERT_EQ(Eval(simplifier.ToExpr(simplifier.Recombine(sum)), values), want);
    });
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Under a condition an expression may become simpler. It keeps its value wherever the condition
// holds.
TEST(Simplify, AllSmallConditionsAreUsedRightly) {
  ExprPool pool;
  Simplifier simplifier(pool);
  const VarRange ranges[] = {{0, 4}, {0, 2}};
  for (const VarRange& range : ranges) simplifier.AddVar(range.hi + 1);
  const std::vector<Expr> exprs = SmallExprs(pool, 2, 1);
  int simplified = 0;
  for (Expr a : exprs) {
    for (Expr b : {pool.Int(-1), pool.Int(2), pool.Var(1)}) {
      for (Op op : {Op::kEq, Op::kNe, Op::kLt, Op::kLe, Op::kGt, Op::kGe}) {
        const Expr condition = simplifier.Simplify(pool.Binary(op, a, b));
        const FactScope scope(simplifier, condition);
        for (Expr e : exprs) {
          const Expr comparison = pool.Lt(e, pool.Int(2));
          const Linear sum = simplifier.ToLinear(e);
          const Expr simple = simplifier.Simplify(comparison);
          const Interval range = simplifier.RangeOf(sum);
          simplified += simple->is_const_int() && !comparison->is_const_int();
          ForAllValues(ranges, [&](std::span<const int64_t> values) {
            if (Eval(condition, values) == 0) return;
            ASSERT_EQ(Eval(simple, values), Eval(comparison, values));
            ASSERT_EQ(Eval(simplifier.ToExpr(sum), values), Eval(e, values));
            ASSERT_TRUE(range.Contains(Eval(e, values)));
          });
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(simplified, 1000);
}

class SimplifyTest : public testing::Test {
 protected:
  ExprPool pool_;
  Simplifier simplifier_{pool_};
};

TEST_F(SimplifyTest, TakesTilesApart) {
  const Linear outer = simplifier_.Var(simplifier_.AddVar(8)),
               inner = simplifier_.Var(simplifier_.AddVar(4));
  const Linear i = outer * 4 + inner;
  EXPECT_EQ(simplifier_.FloorDiv(i, 4), outer);
  EXPECT_EQ(simplifier_.FloorMod(i, 4), inner);
  EXPECT_EQ(simplifier_.FloorDiv(i, 8), simplifier_.FloorDiv(outer, 2));
  EXPECT_EQ(simplifier_.FloorMod(i, 2), simplifier_.FloorMod(inner, 2));
  EXPECT_EQ(simplifier_.FloorMod(i, 8), simplifier_.FloorMod(outer, 2) * 4 + inner);
  EXPECT_EQ(simplifier_.FloorDiv(simplifier_.FloorDiv(i, 2), 4), simplifier_.FloorDiv(i, 8));
}

TEST_F(SimplifyTest, NarrowArithmeticIsASumWhereItFits) {
  const Linear x = simplifier_.Var(simplifier_.AddVar(100));
  const Expr narrow = pool_.Cast(kInt8, simplifier_.ToExpr(x));
  EXPECT_EQ(simplifier_.ToLinear(pool_.Add(narrow, pool_.Int(27, kInt8))), x + Constant(27));
  // 99 + 29 = 128 does not fit.
  const Linear wrapped = simplifier_.ToLinear(pool_.Add(narrow, pool_.Int(29, kInt8)));
  ASSERT_EQ(wrapped.terms.size(), 1u);
  EXPECT_EQ(wrapped.terms[0].atom->type, kIndex);
  EXPECT_EQ(simplifier_.RangeOf(wrapped), (Interval{-128, 127}));
}

// A uint64 is a term of its own, because its order and its quotients are not those of an int64.
TEST_F(SimplifyTest, LargeUnsignedNumbersAreTerms) {
  const Expr zero[] = {pool_.Int(0)};
  const Expr load = pool_.Load(0, zero, ir::kUInt64);
  const Expr one = pool_.Int(1, ir::kUInt64), large = pool_.Int(-2, ir::kUInt64);
  for (const Expr e : {pool_.FloorDiv(load, pool_.Int(3, ir::kUInt64)), pool_.Max(load, large),
                       pool_.Add(load, one), load}) {
    const Linear form = simplifier_.ToLinear(pool_.Cast(kIndex, e));
    ASSERT_EQ(form.terms.size(), 1u);
    EXPECT_EQ(form.terms[0].atom, pool_.Cast(kIndex, e));
    EXPECT_FALSE(simplifier_.RangeOf(form).bounded());
  }
  EXPECT_EQ(simplifier_.RangeOf(simplifier_.ToLinear(pool_.Cast(kIndex, load))), kEverything);
  EXPECT_FALSE(simplifier_.Simplify(pool_.Lt(load, large))->is_const_int());
}

TEST_F(SimplifyTest, BitsOfAFloatAreATerm) {
  const Expr zero[] = {pool_.Int(0)};
  const Expr bits = pool_.Reinterpret(kIndex, pool_.Load(0, zero, ir::kFloat64));
  const Linear sum = simplifier_.ToLinear(pool_.Add(bits, pool_.Int(1)));
  EXPECT_EQ(simplifier_.ToExpr(sum), pool_.Add(bits, pool_.Int(1)));
}

TEST_F(SimplifyTest, LoadedIndicesAreKIndexTerms) {
  const Expr zero[] = {pool_.Int(0)};
  const Expr load = pool_.Load(0, zero, ir::kInt32);
  const Linear sum = simplifier_.ToLinear(load) + Constant(1);
  EXPECT_EQ(simplifier_.ToExpr(sum), pool_.Add(pool_.Cast(kIndex, load), pool_.Int(1)));
  EXPECT_EQ(simplifier_.ToLinear(pool_.Cast(kIndex, load)), simplifier_.ToLinear(load));
  EXPECT_EQ(simplifier_.RangeOf(sum), (Interval{-(int64_t{1} << 31) + 1, int64_t{1} << 31}));
}

TEST_F(SimplifyTest, DecidesComparisonsByRange) {
  const Expr i = pool_.Var(simplifier_.AddVar(7));
  EXPECT_TRUE(simplifier_.Simplify(pool_.Lt(i, pool_.Int(7)))->is_const_int(1));
  EXPECT_TRUE(simplifier_.Simplify(pool_.Ge(i, pool_.Int(7)))->is_const_int(0));
  EXPECT_EQ(simplifier_.Simplify(pool_.Lt(pool_.Add(i, pool_.Int(3)), pool_.Int(9))),
            pool_.Lt(i, pool_.Int(6)));
}

// Sums that wrap around keep their value, and nothing is concluded from their coefficients.
TEST_F(SimplifyTest, SumsThatOverflowAreNotTakenApart) {
  const Expr x = pool_.Var(simplifier_.AddVar(100));
  const Expr large = pool_.Int(int64_t{1} << 62);
  const Expr wrapped = pool_.Mul(pool_.Mul(x, large), pool_.Int(12));
  const Linear sum = simplifier_.ToLinear(pool_.Add(wrapped, x));
  EXPECT_TRUE(sum.overflow);
  EXPECT_EQ(simplifier_.RangeOf(sum), kEverything);
  for (Expr e : {pool_.FloorDiv(pool_.Add(wrapped, x), pool_.Int(4)),
                 pool_.FloorMod(pool_.Add(wrapped, x), pool_.Int(3)),
                 pool_.Lt(pool_.Add(wrapped, x), pool_.Int(7))}) {
    const Expr simple = simplifier_.Simplify(e);
    for (int64_t value : {0, 1, 2, 3, 99}) {
      const int64_t vars[] = {value};
      // The sum is computed in unsigned arithmetic, which wraps as the processor does.
      const auto both = static_cast<int64_t>((static_cast<uint64_t>(value) << 62) * 12 +
                                             static_cast<uint64_t>(value));
      const int64_t want = e->op == Op::kFloorDiv   ? ir::FloorDiv(both, 4)
                           : e->op == Op::kFloorMod ? ir::FloorMod(both, 3)
                                                    : both < 7;
      EXPECT_EQ(Eval(simple, vars), want) << value;
    }
  }
  const Expr limit = pool_.Int(INT64_MIN + 1);
  const Expr below = pool_.Lt(pool_.Add(pool_.Mul(x, x), pool_.Int(3)), limit);
  EXPECT_EQ(Eval(simplifier_.Simplify(below), std::vector<int64_t>{5}), 0);
}

TEST_F(SimplifyTest, RecombinesFlattenedAddresses) {
  const Linear f = simplifier_.Var(simplifier_.AddVar(3 * 5 * 7));
  const std::vector<Linear> indices = {simplifier_.FloorDiv(f, 35),
                                       simplifier_.FloorMod(simplifier_.FloorDiv(f, 7), 5),
                                       simplifier_.FloorMod(f, 7)};
  const std::vector<int64_t> shape = {3, 5, 7};
  EXPECT_EQ(Flatten(simplifier_, indices, shape), f);
}

TEST_F(SimplifyTest, RecombinesQuotientsThatHaveAnotherForm) {
  const Linear i = simplifier_.Var(simplifier_.AddVar(12)),
               j = simplifier_.Var(simplifier_.AddVar(2));
  const Linear x = simplifier_.FloorDiv(i * 2 + j, 3), quotient = simplifier_.FloorDiv(x, 2);
  EXPECT_EQ(quotient, simplifier_.FloorDiv(i, 3));
  EXPECT_EQ(simplifier_.Recombine(quotient * 10 + simplifier_.FloorMod(x, 2) * 5), x * 5);
}

// A body may take remainders by negative numbers.
TEST_F(SimplifyTest, RemaindersByNegativeNumbersStay) {
  const Expr x = pool_.Var(simplifier_.AddVar(12));
  const Linear sum =
      simplifier_.ToLinear(pool_.Add(pool_.FloorMod(x, pool_.Int(-3)), pool_.Int(2)));
  const Linear indices[] = {sum};
  const int64_t shape[] = {3};
  EXPECT_EQ(Flatten(simplifier_, indices, shape), sum);
}

TEST_F(SimplifyTest, DoesNotVisitTheSideNotTaken) {
  const Expr i = pool_.Var(simplifier_.AddVar(4));
  const Expr index[] = {i};
  const Expr guarded =
      pool_.If(pool_.Lt(i, pool_.Int(4)), pool_.Float(1), pool_.Load(0, index, ir::kFloat32));
  const auto fail = [](Expr e) {
    ADD_FAILURE();
    return e;
  };
  const Simplifier::LoadFn load = fail;
  EXPECT_TRUE(ir::Equal(simplifier_.Simplify(guarded, nullptr, &load), pool_.Float(1)));
}

}  // namespace
}  // namespace kiln::arith
