#include "compiler/arith/linear.h"

#include <gtest/gtest.h>

#include <random>

#include "compiler/arith/facts.h"
#include "compiler/arith/range.h"
#include "compiler/arith/small_exprs_testing.h"

namespace kiln::arith {
namespace {
using ir::Expr;

class LinearTest : public testing::Test {
 protected:
  Expr Int(int64_t v) { return pool_.Int(v); }
  ir::ExprPool pool_;
  Expr i_ = pool_.Var(0), j_ = pool_.Var(1);
};

Linear LinearizeAndJoin(Expr e, KnownVars known = {}) {
  Linear form = Linearize(e, known);
  JoinQuotients(form, known);
  return form;
}

int64_t ValueOf(const Linear& form, std::span<const int64_t> vars) {
  int64_t sum = form.constant;
  for (const Term& term : form.terms) sum += term.coefficient * Eval(term.atom, vars);
  return sum;
}

TEST_F(LinearTest, AllSmallExpressionsKeepTheirValueAndRange) {
  const VarRange ranges[] = {{0, 4}, {-3, 2}};
  const Interval intervals[] = {{0, 4}, {-3, 2}};
  for (Expr e : SmallExprs(pool_, 2, 2)) {
    const Linear form = Linearize(e), joined = LinearizeAndJoin(e);
    const Interval range = RangeOf(e, intervals), range_of_form = RangeOf(form, intervals);
    ForAllValues(ranges, [&](std::span<const int64_t> values) {
      const int64_t want = Eval(e, values);
      ASSERT_EQ(ValueOf(form, values), want);
      ASSERT_EQ(ValueOf(joined, values), want);
      ASSERT_TRUE(range.Contains(want)) << range.lo << " " << want << " " << range.hi;
      ASSERT_TRUE(range_of_form.Contains(want));
      const std::optional<int64_t> known[] = {values[0], values[1]};
      ASSERT_EQ(Evaluate(e, known), want);
      const Linear constant = Linearize(e, known);
      ASSERT_TRUE(constant.is_constant());
      ASSERT_EQ(constant.constant, want);
      ASSERT_EQ(ValueOf(Linearize(e, std::span(known).first(1)), values), want);
    });
    if (HasFatalFailure()) return;
    for (size_t t = 0; t < form.terms.size(); ++t) {
      ASSERT_NE(form.terms[t].coefficient, 0);
      for (size_t u = 0; u < t; ++u) ASSERT_NE(form.terms[t].atom, form.terms[u].atom);
    }
  }
}

TEST_F(LinearTest, AllPairsOfQuotientsAndRemaindersJoinWhereTheyAreOne) {
  const Expr sum = pool_.Add(pool_.Mul(i_, Int(8)), j_);
  const VarRange ranges[] = {{-3, 3}, {-9, 9}};
  for (Expr x : {i_, sum, pool_.FloorDiv(sum, Int(3))}) {
    for (int64_t c : {-4, -1, 2, 4, 5}) {
      for (int64_t k : {-3, 1, 2}) {
        for (int64_t factor = -21; factor <= 21; ++factor) {
          const Expr quotient = pool_.FloorDiv(x, Int(c)), remainder = pool_.FloorMod(x, Int(c));
          const Linear form = LinearizeAndJoin(
              pool_.Add(pool_.Mul(quotient, Int(factor)), pool_.Mul(remainder, Int(k))));
          if (factor == k * c) {
            Linear want;
            want.AddScaled(Linearize(x), k);
            EXPECT_EQ(form, want);
          }
          ForAllValues(ranges, [&](std::span<const int64_t> values) {
            ASSERT_EQ(ValueOf(form, values),
                      factor * Eval(quotient, values) + k * Eval(remainder, values));
          });
        }
      }
    }
  }
}

// A fused loop is made of four axes. The offset of an element by these axes is the loop itself.
TEST_F(LinearTest, AxesOfAFusedLoopJoin) {
  const Expr a = pool_.FloorDiv(i_, Int(14336));
  const Expr b = pool_.FloorMod(pool_.FloorDiv(i_, Int(1024)), Int(14));
  const Expr c = pool_.FloorMod(i_, Int(1024));
  const Expr inner = pool_.Add(pool_.Mul(b, Int(1024)), c);
  const Linear form = LinearizeAndJoin(pool_.Add(pool_.Mul(a, Int(14336)), inner));
  ASSERT_EQ(form.terms.size(), 1u);
  EXPECT_EQ(form.Coefficient(i_), 1);
  // The outer axis of another loop does not join.
  const Expr other = pool_.Mul(pool_.FloorDiv(j_, Int(14336)), Int(14336));
  EXPECT_EQ(LinearizeAndJoin(pool_.Add(other, inner)).terms.size(), 3u);
}

TEST_F(LinearTest, AddressesOfElements) {
  const Expr indices[] = {pool_.FloorDiv(i_, Int(35)),
                          pool_.FloorMod(pool_.FloorDiv(i_, Int(7)), Int(5)), j_,
                          pool_.FloorMod(i_, Int(7))};
  const int64_t shape[] = {3, 5, 1, 7};
  EXPECT_EQ(Flatten(indices, shape), (Linear{0, {{j_, 7}, {i_, 1}}}));
  EXPECT_EQ(Flatten({}, {}), Linear());
}

TEST_F(LinearTest, SumsOfProducts) {
  // The form is 3 * (j + 2 * i) - j + 5.
  const Linear form = Linearize(
      pool_.Add(pool_.Sub(pool_.Mul(Int(3), pool_.Add(j_, pool_.Mul(i_, Int(2)))), j_), Int(5)));
  EXPECT_EQ(form, (Linear{5, {{j_, 2}, {i_, 6}}}));
  EXPECT_TRUE(Linearize(pool_.Sub(pool_.Add(i_, j_), pool_.Add(j_, i_))).is_constant());
}

TEST_F(LinearTest, MultiplyAddIsASumAndAProduct) {
  const std::vector<int64_t> numbers = {0, 1, -3, int64_t{1} << 32, INT64_MAX, INT64_MIN};
  std::vector<Linear> forms;
  for (int64_t a : numbers) {
    for (int64_t b : numbers) {
      Linear form = Constant(a);
      form.AddTerm(i_, b);
      form.AddTerm(j_, a);
      forms.push_back(form);
    }
  }
  for (const Linear& a : forms) {
    for (const Linear& b : forms) {
      for (int64_t factor : numbers) EXPECT_EQ(MultiplyAdd(a, b, factor), a + b * factor);
    }
  }
}

TEST_F(LinearTest, KnownVariablesAreConstants) {
  const std::optional<int64_t> known[] = {std::nullopt, 7};
  const Linear form = Linearize(pool_.Add(pool_.Mul(i_, j_), pool_.FloorMod(j_, Int(4))), known);
  EXPECT_EQ(form, (Linear{3, {{i_, 7}}}));
}

TEST_F(LinearTest, NarrowIntegersAreAtomsBecauseTheyWrap) {
  const Expr v = pool_.Cast(ir::kInt8, i_);
  const Expr e = pool_.Cast(ir::kIndex, pool_.Add(v, v));
  EXPECT_EQ(Linearize(e), (Linear{0, {{e, 1}}}));
  const Interval ranges[] = {{0, 100}};
  EXPECT_EQ(RangeOf(e, ranges), (Interval{-128, 127}));
  EXPECT_FALSE(Evaluate(e, std::vector<std::optional<int64_t>>{100}).has_value());
}

TEST_F(LinearTest, UnknownVariablesHaveNoValueAndNoBounds) {
  EXPECT_FALSE(Evaluate(pool_.Add(i_, Int(1)), {}).has_value());
  EXPECT_EQ(RangeOf(i_, {}), kEverything);
  EXPECT_EQ(RangeOf(pool_.FloorMod(i_, Int(5)), {}), (Interval{0, 4}));
  EXPECT_EQ(RangeOf(pool_.Max(i_, Int(5)), {}), (Interval{5, kUnbounded}));
  const Expr indices[] = {i_};
  EXPECT_EQ(RangeOf(pool_.Load(0, indices, ir::kInt8), {}), (Interval{-128, 127}));
}

// Compares canonical sums of large numbers with __int128. They are exact if all numbers fit, else
// they are right modulo 2^64 and `overflow` is set.
TEST_F(LinearTest, OverflowIsSaid) {
  const uint64_t seed = 5;
  std::mt19937_64 rng(seed);
  const auto number = [&] {
    const auto any = static_cast<int64_t>(rng());
    return rng() % 2 == 0 ? any >> (rng() % 64) : (any < 0 ? INT64_MAX : -INT64_MAX) + any % 3 / 2;
  };
  using Wide = __int128;
  const auto fits = [](Wide v) { return v >= INT64_MIN && v <= INT64_MAX; };
  int overflows = 0;
  for (int round = 0; round < 20'000; ++round) {
    const int64_t a[] = {number(), number(), number()}, b[] = {number(), number(), number()};
    const int64_t k = number();
    const auto form = [&](const int64_t* v) {
      Linear f = Constant(v[0]);
      f.AddTerm(i_, v[1]);
      f.AddTerm(j_, v[2]);
      return f;
    };
    const Linear fa = form(a), fb = form(b);
    Linear scaled = fa;
    scaled.AddScaled(fb, k);
    const Linear results[] = {fa + fb, fa - fb, fa * k, scaled};
    for (int which = 0; which < 4; ++which) {
      const Linear& result = results[which];
      const auto want = [&](int n) -> Wide {
        if (which == 0) return Wide{a[n]} + b[n];
        if (which == 1) return Wide{a[n]} - b[n];
        if (which == 2) return Wide{a[n]} * k;
        return a[n] + Wide{b[n]} * k;
      };
      const int64_t got[] = {result.constant, result.Coefficient(i_), result.Coefficient(j_)};
      bool all_fit = true;
      for (int n = 0; n < 3; ++n) {
        all_fit = all_fit && fits(want(n));
        ASSERT_EQ(static_cast<uint64_t>(want(n)), static_cast<uint64_t>(got[n]))
            << "seed " << seed << " round " << round << " result " << which;
      }
      if (!all_fit) {
        ++overflows;
        ASSERT_TRUE(result.overflow) << "seed " << seed << " round " << round << " " << which;
        ASSERT_EQ(RangeOf(result, {}), kEverything);
        // Only the product may overflow in this case.
      } else if (which != 3) {
        ASSERT_FALSE(result.overflow) << "seed " << seed << " round " << round << " " << which;
      }
    }
  }
  EXPECT_GT(overflows, 1000);
}

// If a sum lies in an interval, its multiples and the sums that contain it have ranges that follow
// from it.
TEST_F(LinearTest, FactsNarrowAllSmallSums) {
  const VarRange ranges[] = {{0, 3}, {-2, 2}};
  const Interval intervals[] = {{0, 3}, {-2, 2}};
  const auto range_of = [&](const Linear& form) { return RangeOf(form, intervals); };
  const std::vector<Expr> exprs = SmallExprs(pool_, 2, 1);
  int narrowed = 0;
  for (Expr a : exprs) {
    for (ir::Op op :
         {ir::Op::kEq, ir::Op::kNe, ir::Op::kLt, ir::Op::kLe, ir::Op::kGt, ir::Op::kGe}) {
      for (int64_t limit : {-2, 0, 3}) {
        Fact fact = FactOf(op, Linearize(pool_.Sub(a, Int(limit))));
        if (fact.sum.is_constant()) continue;
        Facts facts;
        facts.Add(std::move(fact));
        const Expr condition = pool_.Binary(op, a, Int(limit));
        for (Expr e : exprs) {
          const Linear form = Linearize(e);
          const Interval before = range_of(form), range = facts.Narrow(form, before, range_of);
          ASSERT_TRUE(before.Contains(range));
          narrowed += range != before;
          ForAllValues(ranges, [&](std::span<const int64_t> values) {
            if (Eval(condition, values) == 0) return;
            ASSERT_TRUE(range.Contains(Eval(e, values)));
          });
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(narrowed, 1000);
  Facts facts;
  facts.Add(FactOf(ir::Op::kLt, Linearize(pool_.Sub(pool_.Add(i_, j_), Int(2)))));
  const Linear twice = Linearize(pool_.Sub(pool_.Mul(pool_.Add(j_, i_), Int(2)), Int(1)));
  EXPECT_EQ(facts.Narrow(twice, range_of(twice), range_of), (Interval{-5, 1}));
}

}  // namespace
}  // namespace kiln::arith
