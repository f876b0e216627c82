#include "compiler/ir/simplify.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "compiler/ir/scalar.h"

namespace kiln::ir {
namespace {

// An evaluator as obvious as can be.
int64_t Eval(Expr e, const std::vector<int64_t>& vars) {
  const auto arg = [&](int i) { return Eval(e->arg(i), vars); };
  switch (e->op) {
    case Op::kInt:
      return e->int_value;
    case Op::kVar:
      return vars[e->id];
    case Op::kAdd:
      return WrapToType(arg(0) + arg(1), e->type);
    case Op::kSub:
      return WrapToType(arg(0) - arg(1), e->type);
    case Op::kMul:
      return WrapToType(arg(0) * arg(1), e->type);
    case Op::kCast:
      return WrapToType(arg(0), e->type);
    case Op::kFloorDiv:
      return FloorDiv(arg(0), arg(1));
    case Op::kFloorMod:
      return FloorMod(arg(0), arg(1));
    case Op::kMin:
      return std::min(arg(0), arg(1));
    case Op::kMax:
      return std::max(arg(0), arg(1));
    case Op::kLt:
      return arg(0) < arg(1);
    case Op::kLe:
      return arg(0) <= arg(1);
    case Op::kGt:
      return arg(0) > arg(1);
    case Op::kGe:
      return arg(0) >= arg(1);
    case Op::kEq:
      return arg(0) == arg(1);
    case Op::kNe:
      return arg(0) != arg(1);
    case Op::kAnd:
      return arg(0) && arg(1);
    case Op::kOr:
      return arg(0) || arg(1);
    case Op::kNot:
      return !arg(0);
    case Op::kSelect:
    case Op::kIf:
      return arg(0) ? arg(1) : arg(2);
    default:
      ADD_FAILURE() << "op " << static_cast<int>(e->op);
      return 0;
  }
}

void ForAllValues(const std::vector<int64_t>& extents,
                  const std::function<void(const std::vector<int64_t>&)>& visit) {
  std::vector<int64_t> values(extents.size(), 0);
  while (true) {
    visit(values);
    size_t i = 0;
    while (i < extents.size() && ++values[i] == extents[i]) values[i++] = 0;
    if (i == extents.size()) return;
  }
}

struct Generator {
  ExprPool& pool;
  std::mt19937_64& rng;
  int num_vars;

  int64_t Pick(int64_t n) { return static_cast<int64_t>(rng() % n); }

  Expr Int(int depth) {
    if (depth == 0 || Pick(5) == 0)
      return Pick(3) == 0 ? pool.Int(Pick(12) - 4) : pool.Var(Pick(num_vars));
    Expr a = Int(depth - 1);
    switch (Pick(10)) {
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

  // Arithmetic in int8: some of it wraps around.
  Expr Narrow(Expr a, Expr b) {
    const Op ops[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kMin};
    return pool.Binary(ops[Pick(4)], pool.Cast(kInt8, a), pool.Cast(kInt8, b));
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
    std::vector<int64_t> extents;
    for (int i = 0; i < 3; ++i) {
      extents.push_back(1 + static_cast<int64_t>(rng() % 7));
      simplifier.AddVar(extents.back());
    }
    Generator generate{pool, rng, 3};
    const Expr e = rng() % 4 == 0 ? generate.Bool(3) : generate.Int(4);
    const Expr simple = simplifier.Simplify(e);
    const bool is_int = e->type == kIndex;
    const Interval range = is_int ? simplifier.RangeOf(simplifier.ToLinear(e)) : Interval{0, 1};
    ForAllValues(extents, [&](const std::vector<int64_t>& values) {
      const int64_t want = Eval(e, values);
      ASSERT_EQ(Eval(simple, values), want);
      ASSERT_GE(want, range.lo);
      ASSERT_LE(want, range.hi);
    });
    if (testing::Test::HasFatalFailure()) return;
    EXPECT_TRUE(
        Equal(simplifier.Simplify(simple), simplifier.Simplify(simplifier.Simplify(simple))));
  }
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

TEST_F(SimplifyTest, LoadedIndicesAreKIndexTerms) {
  const Expr zero[] = {pool_.Int(0)};
  const Expr load = pool_.Load(0, zero, kInt32);
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

TEST_F(SimplifyTest, RecombinesFlattenedAddresses) {
  const Linear f = simplifier_.Var(simplifier_.AddVar(3 * 5 * 7));
  const std::vector<Linear> indices = {simplifier_.FloorDiv(f, 35),
                                       simplifier_.FloorMod(simplifier_.FloorDiv(f, 7), 5),
                                       simplifier_.FloorMod(f, 7)};
  const std::vector<int64_t> shape = {3, 5, 7};
  EXPECT_EQ(Flatten(simplifier_, indices, shape), f);
}

TEST_F(SimplifyTest, DoesNotVisitTheSideNotTaken) {
  const Expr i = pool_.Var(simplifier_.AddVar(4));
  const Expr index[] = {i};
  const Expr guarded =
      pool_.If(pool_.Lt(i, pool_.Int(4)), pool_.Float(1), pool_.Load(0, index, kFloat32));
  const auto fail = [](Expr e) {
    ADD_FAILURE();
    return e;
  };
  const Simplifier::LoadFn load = fail;
  EXPECT_TRUE(Equal(simplifier_.Simplify(guarded, nullptr, &load), pool_.Float(1)));
}

}  // namespace
}  // namespace kiln::ir
