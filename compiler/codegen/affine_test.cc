#include "compiler/codegen/affine.h"

#include <gtest/gtest.h>

#include <random>

namespace kiln::codegen {
namespace {
using ir::Expr;

class AffineTest : public testing::Test {
 protected:
  Expr Int(int64_t v) { return pool_.Int(v); }
  ir::ExprPool pool_;
  Expr i_ = pool_.Var(0), j_ = pool_.Var(1), k_ = pool_.Var(2);
};

TEST_F(AffineTest, SumsOfProducts) {
  // 3 * (i + 2 * j) - i + 5
  const Expr e =
      pool_.Add(pool_.Sub(pool_.Mul(Int(3), pool_.Add(i_, pool_.Mul(j_, Int(2)))), i_), Int(5));
  const LinearForm form = Linearize(e, {});
  EXPECT_EQ(form.constant, 5);
  EXPECT_EQ(form.Coefficient(i_), 2);
  EXPECT_EQ(form.Coefficient(j_), 6);
  EXPECT_EQ(form.terms.size(), 2u);
}

TEST_F(AffineTest, TermsThatCancelDisappear) {
  EXPECT_TRUE(Linearize(pool_.Sub(pool_.Add(i_, j_), pool_.Add(j_, i_)), {}).terms.empty());
}

TEST_F(AffineTest, KnownVariablesAreConstants) {
  const std::optional<int64_t> known[] = {std::nullopt, 7};
  const LinearForm form =
      Linearize(pool_.Add(pool_.Mul(i_, j_), pool_.FloorMod(j_, Int(4))), known);
  EXPECT_EQ(form.constant, 3);
  EXPECT_EQ(form.Coefficient(i_), 7);
}

TEST_F(AffineTest, QuotientAndRemainderJoin) {
  const Expr x = pool_.Add(pool_.Mul(i_, Int(8)), j_);
  const Expr e = pool_.Add(pool_.Mul(pool_.FloorDiv(x, Int(4)), Int(12)),
                           pool_.Mul(pool_.FloorMod(x, Int(4)), Int(3)));
  const LinearForm form = Linearize(e, {});
  EXPECT_EQ(form.Coefficient(i_), 24);
  EXPECT_EQ(form.Coefficient(j_), 3);
  // Strides that do not fit stay apart.
  const Expr apart =
      pool_.Add(pool_.Mul(pool_.FloorDiv(x, Int(4)), Int(5)), pool_.FloorMod(x, Int(4)));
  EXPECT_EQ(Linearize(apart, {}).Coefficient(j_), 0);
}

// The offset of an element by the four axes that a fused loop was made of is the loop itself.
TEST_F(AffineTest, AxesOfAFusedLoopJoin) {
  const Expr a = pool_.FloorDiv(i_, Int(14336));
  const Expr b = pool_.FloorMod(pool_.FloorDiv(i_, Int(1024)), Int(14));
  const Expr c = pool_.FloorMod(i_, Int(1024));
  const Expr offset = pool_.Add(pool_.Add(pool_.Mul(a, Int(14336)), pool_.Mul(b, Int(1024))), c);
  const LinearForm form = Linearize(offset, {});
  ASSERT_EQ(form.terms.size(), 1u);
  EXPECT_EQ(form.Coefficient(i_), 1);
  // Of another loop's outer axis they stay apart.
  const Expr other = pool_.FloorDiv(j_, Int(14336));
  const Expr apart = pool_.Add(pool_.Add(pool_.Mul(other, Int(14336)), pool_.Mul(b, Int(1024))), c);
  EXPECT_EQ(Linearize(apart, {}).terms.size(), 3u);
}

TEST_F(AffineTest, NarrowIntegersAreAtomsBecauseTheyWrap) {
  const Expr v = pool_.Cast(ir::kInt8, i_);
  const Expr e = pool_.Cast(ir::kIndex, pool_.Add(v, v));
  const LinearForm form = Linearize(e, {});
  ASSERT_EQ(form.terms.size(), 1u);
  EXPECT_EQ(form.terms[0].atom, e);
}

// The form has the expression's value and the range holds it, for random expressions and values.
TEST_F(AffineTest, FormAndRangeAgreeWithEvaluation) {
  std::mt19937_64 rng(11);
  const auto random_expr = [&](auto& self, int depth) -> Expr {
    if (depth == 0)
      return rng() % 3 == 0 ? Int(static_cast<int64_t>(rng() % 9) - 4)
                            : pool_.Var(static_cast<int32_t>(rng() % 3));
    const Expr a = self(self, depth - 1), b = self(self, depth - 1);
    const Expr divisor = Int(1 + static_cast<int64_t>(rng() % 6));
    switch (rng() % 8) {
      case 0:
        return pool_.Sub(a, b);
      case 1:
        return pool_.Mul(a, Int(static_cast<int64_t>(rng() % 5) - 2));
      case 2:
        return pool_.FloorDiv(a, divisor);
      case 3:
        return pool_.FloorMod(a, divisor);
      case 4:
        return pool_.Min(a, b);
      case 5:
        return pool_.Add(pool_.Mul(pool_.FloorDiv(a, divisor), divisor),
                         pool_.FloorMod(a, divisor));
      case 6:
        return pool_.Select(pool_.Lt(a, b), a, b);
      default:
        return pool_.Add(a, b);
    }
  };
  const Range ranges[] = {{0, 6}, {0, 11}, {-3, 4}};
  for (int round = 0; round < 2000; ++round) {
    const Expr e = random_expr(random_expr, 4);
    const LinearForm form = Linearize(e, {});
    const Range range = RangeOf(e, ranges), form_range = RangeOf(form, ranges);
    for (int sample = 0; sample < 5; ++sample) {
      std::optional<int64_t> known[3];
      for (int v = 0; v < 3; ++v) {
        known[v] =
            ranges[v].lo +
            static_cast<int64_t>(rng() % static_cast<uint64_t>(ranges[v].hi - ranges[v].lo + 1));
      }
      const std::optional<int64_t> value = Evaluate(e, known);
      ASSERT_TRUE(value.has_value());
      int64_t sum = form.constant;
      for (const Term& term : form.terms)
        sum += term.coefficient * Evaluate(term.atom, known).value();
      ASSERT_EQ(sum, *value);
      ASSERT_TRUE(range.lo <= *value && *value <= range.hi)
          << range.lo << " " << *value << " " << range.hi;
      ASSERT_TRUE(form_range.lo <= *value && *value <= form_range.hi);
    }
  }
}

TEST_F(AffineTest, UnknownVariablesHaveNoValueAndNoBounds) {
  EXPECT_FALSE(Evaluate(pool_.Add(i_, Int(1)), {}).has_value());
  EXPECT_FALSE(RangeOf(pool_.Add(i_, Int(1)), {}).bounded());
  EXPECT_EQ(RangeOf(pool_.FloorMod(i_, Int(5)), {}), (Range{0, 4}));
}
}  // namespace
}  // namespace kiln::codegen
