#include "compiler/ir/expr.h"

#include <cmath>
#include <limits>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "compiler/ir/random_expr_testing.h"
#include "compiler/ir/substitution.h"
#include "compiler/ir/traverse.h"

namespace kiln::ir {
namespace {
using testing::HasSubstr;

TEST(ExprTest, EqualStructureIsOneNode) {
  ExprPool pool;
  const Expr a = pool.Add(pool.Mul(pool.Var(0), pool.Int(4)), pool.Var(1));
  const Expr b = pool.Add(pool.Mul(pool.Var(0), pool.Int(4)), pool.Var(1));
  EXPECT_EQ(a, b);
  EXPECT_NE(a, pool.Add(pool.Mul(pool.Var(0), pool.Int(4)), pool.Var(2)));
  EXPECT_NE(pool.Int(1), pool.Int(1, kInt32));
  EXPECT_NE(pool.Float(0.0), pool.Float(-0.0));
  EXPECT_EQ(pool.Float(NAN), pool.Float(-NAN));
  const size_t before = pool.num_nodes();
  pool.Add(pool.Mul(pool.Var(0), pool.Int(4)), pool.Var(1));
  EXPECT_EQ(pool.num_nodes(), before);
}

TEST(ExprTest, IntegerConstantsFold) {
  ExprPool pool;
  auto binary = [&](Op op, int64_t a, int64_t b, Type type = kIndex) {
    const Expr e = pool.Binary(op, pool.Int(a, type), pool.Int(b, type));
    KILN_CHECK(e->is_const_int());
    return e->int_value;
  };
  EXPECT_EQ(binary(Op::kAdd, 3, 4), 7);
  EXPECT_EQ(binary(Op::kAdd, 127, 1, kInt8), -128);
  EXPECT_EQ(binary(Op::kMul, int64_t{1} << 31, 2, kInt32), 0);
  EXPECT_EQ(binary(Op::kFloorDiv, -7, 2), -4);
  EXPECT_EQ(binary(Op::kFloorMod, -7, 2), 1);
  EXPECT_EQ(binary(Op::kFloorDiv, 7, -2), -4);
  EXPECT_EQ(binary(Op::kFloorMod, 7, -2), -1);
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(binary(Op::kFloorDiv, lowest, -1), lowest);
  EXPECT_EQ(binary(Op::kFloorMod, lowest, -1), 0);
  EXPECT_EQ(binary(Op::kMin, -1, 2), -1);
  EXPECT_EQ(binary(Op::kMax, -1, 2), 2);
  EXPECT_EQ(binary(Op::kLe, 2, 2), 1);
  EXPECT_EQ(pool.FloorDiv(pool.Int(1), pool.Int(0))->op, Op::kFloorDiv);
}

TEST(ExprTest, IdentitiesFold) {
  ExprPool pool;
  const Expr x = pool.Var(0), y = pool.Var(1), zero = pool.Int(0), one = pool.Int(1);
  EXPECT_EQ(pool.Add(x, zero), x);
  EXPECT_EQ(pool.Add(zero, x), x);
  EXPECT_EQ(pool.Sub(x, zero), x);
  EXPECT_EQ(pool.Sub(x, x), zero);
  EXPECT_EQ(pool.Mul(x, one), x);
  EXPECT_EQ(pool.Mul(zero, x), zero);
  EXPECT_EQ(pool.FloorDiv(x, one), x);
  EXPECT_EQ(pool.FloorMod(x, one), zero);
  EXPECT_EQ(pool.Min(x, x), x);
  const Expr less = pool.Lt(x, y), yes = pool.Bool(true), no = pool.Bool(false);
  EXPECT_EQ(pool.Not(pool.Not(less)), less);
  EXPECT_EQ(pool.And(yes, less), less);
  EXPECT_EQ(pool.And(less, no), no);
  EXPECT_EQ(pool.Or(no, less), less);
  EXPECT_EQ(pool.Or(less, yes), yes);
  EXPECT_EQ(pool.Lt(x, x), no);
  EXPECT_EQ(pool.Eq(x, x), yes);
  EXPECT_EQ(pool.Select(yes, x, y), x);
  EXPECT_EQ(pool.Select(less, x, x), x);
  EXPECT_EQ(pool.If(no, x, y), y);
  EXPECT_EQ(pool.Cast(kIndex, x), x);
}

TEST(ExprTest, FloatsDoNotFold) {
  ExprPool pool;
  const Expr x = pool.Load(0, {}, kFloat32), zero = pool.Float(0), one = pool.Float(1);
  EXPECT_EQ(pool.Add(x, zero)->op, Op::kAdd);
  EXPECT_EQ(pool.Mul(x, one)->op, Op::kMul);
  EXPECT_EQ(pool.Sub(x, x)->op, Op::kSub);
  EXPECT_EQ(pool.Eq(x, x)->op, Op::kEq);
  EXPECT_EQ(pool.Add(one, one)->op, Op::kAdd);
}

TEST(ExprTest, LiteralsAreRoundedAndCastsOfThemFold) {
  ExprPool pool;
  EXPECT_EQ(pool.Float(0.1)->float_value, static_cast<double>(0.1f));
  EXPECT_EQ(pool.Float(0.1, kFloat16)->float_value, 0.0999755859375);
  EXPECT_EQ(pool.Float(0.1, kBFloat16)->float_value, 0.10009765625);
  EXPECT_EQ(pool.Float(0.1, kFloat8E4M3)->float_value, 0.1015625);
  EXPECT_EQ(pool.Cast(kFloat8E5M2, pool.Int(100000)), pool.Float(57344, kFloat8E5M2));
  EXPECT_EQ(pool.Cast(kFloat16, pool.Float(2049)), pool.Float(2048, kFloat16));
  EXPECT_EQ(pool.Cast(kFloat32, pool.Int(3)), pool.Float(3));
  EXPECT_EQ(pool.Cast(kInt8, pool.Int(200)), pool.Int(-56, kInt8));
  EXPECT_EQ(pool.Cast(kBool, pool.Int(200)), pool.Bool(true));
}

TEST(ExprTest, HashAndEqualAcrossPools) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    ExprPool pool, other;
    Rng rng(seed);
    RandomExprs make(pool, rng, 3, {{kFloat32, 2}, {kIndex, 1}});
    const Expr a = make.Make(make.AnyType(), 5), b = make.Make(a->type, 5);
    const Expr copy = other.Import(a), copy_b = other.Import(b);
    EXPECT_EQ(a->hash, copy->hash) << seed;
    EXPECT_TRUE(Equal(a, copy)) << seed;
    EXPECT_EQ(pool.Import(copy), a) << seed;
    EXPECT_EQ(Equal(a, copy_b), a == b) << seed;
  }
}

TEST(ExprTest, SubstituteReplacesVariablesAndSlotsAndFolds) {
  ExprPool pool, other;
  const Expr i = pool.Var(0), j = pool.Var(1);
  const Expr index[] = {pool.Add(i, j), j};
  const Expr e = pool.Mul(pool.Load(0, index, kFloat32), pool.Load(1, {}, kFloat32));
  const Substitution names{.vars = {other.Int(3), nullptr}, .slots = {-1, 7}};
  const Expr expected_index[] = {other.Add(other.Int(3), other.Var(1)), other.Var(1)};
  EXPECT_EQ(other.Substitute(e, names),
            other.Mul(other.Load(0, expected_index, kFloat32), other.Load(7, {}, kFloat32)));
  EXPECT_EQ(pool.Substitute(pool.Add(i, j), {.vars = {pool.Int(0)}}), j);
  EXPECT_EQ(pool.Substitute(e, {}), e);
}

TEST(ExprTest, SubstitutePutsAnIndexInFrontOfThoseOfABuffer) {
  ExprPool pool;
  const Expr i = pool.Var(0), j = pool.Var(1);
  const Expr index[] = {i}, inner[] = {pool.Load(2, index, kIndex)};
  const Expr e = pool.Add(pool.Load(2, inner, kIndex), pool.Load(1, inner, kIndex));
  Substitution names;
  names.SetFirstIndex(2, j);
  names.SetVar(0, pool.Int(5));
  names.SetSlot(1, 3);
  names.SetSlot(2, 4);
  const Expr five[] = {j, pool.Int(5)};
  const Expr replaced = pool.Load(4, five, kIndex);
  const Expr twice[] = {j, replaced}, once[] = {replaced};
  EXPECT_EQ(pool.Substitute(e, names),
            pool.Add(pool.Load(4, twice, kIndex), pool.Load(3, once, kIndex)));
  // The replacements are not substituted in turn.
  EXPECT_EQ(pool.Substitute(pool.Sub(i, j), {.vars = {j, i}}), pool.Sub(j, i));
}

TEST(ExprTest, NamesThatAreNotGivenStay) {
  Substitution names;
  names.SetVar(2, nullptr);
  names.SetSlot(3, 1);
  EXPECT_EQ(names.VarOrNull(7), nullptr);
  EXPECT_EQ(names.SlotFor(3), 1);
  EXPECT_EQ(names.SlotFor(2), 2);
  EXPECT_EQ(names.SlotFor(9), 9);
  EXPECT_EQ(names.FirstIndexOrNull(0), nullptr);
}

TEST(ExprTest, LoadsOfManyIndicesAreCopied) {
  ExprPool pool, other;
  std::vector<Expr> indices;
  for (int i = 0; i < 20; ++i) indices.push_back(pool.Var(i));
  const Expr e = pool.Load(0, indices, kFloat32);
  EXPECT_TRUE(Equal(other.Import(e), e));
}

TEST(ExprTest, SharingMakesNothingExponential) {
  ExprPool pool, other;
  Expr e = pool.Load(0, {}, kFloat32);
  for (int i = 0; i < 60; ++i) e = pool.Add(e, e);
  int visited = 0;
  Visit(e, [&](Expr) { ++visited; });
  EXPECT_EQ(visited, 61);
  const Expr copy = other.Import(e);
  EXPECT_TRUE(Equal(e, copy));
  EXPECT_TRUE(HasLoad(e));
  EXPECT_FALSE(UsesVar(e, 0));
}

TEST(ExprTest, VisitIsChildrenFirstAndOnceAndLinear) {
  ExprPool pool;
  constexpr int kTerms = 1 << 15;
  std::vector<Expr> terms;
  for (int i = 0; i < kTerms; ++i) terms.push_back(pool.Mul(pool.Var(i), pool.Int(i + 2)));
  for (; terms.size() > 1; terms.resize(terms.size() / 2)) {
    for (size_t i = 0; i < terms.size() / 2; ++i) {
      terms[i] = pool.Add(terms[2 * i], terms[2 * i + 1]);
    }
  }
  const Expr e = terms[0];
  internal::NodeSet seen;
  int visited = 0;
  Visit(e, [&](Expr n) {
    ++visited;
    EXPECT_FALSE(seen.Contains(n));
    for (Expr a : n->args()) EXPECT_TRUE(seen.Contains(a));
    seen.Insert(n);
  });
  EXPECT_EQ(visited, 4 * kTerms - 1);
}

TEST(ExprTest, WithArgs) {
  ExprPool pool;
  const Expr x = pool.Var(0), y = pool.Var(1);
  const Expr less = pool.Lt(x, y);
  for (Expr e : {pool.Add(x, y), pool.Min(x, y), less, pool.Select(less, x, y), pool.If(less, x, y),
                 pool.Not(less), pool.Cast(kFloat32, x), pool.Int(4)}) {
    EXPECT_EQ(pool.WithArgs(e, e->args()), e);
  }
}

TEST(ExprTest, BitsFold) {
  ExprPool pool;
  const Expr i = pool.Var(0), x = pool.Var(0, kUInt8), b = pool.Var(0, kBool);
  const auto ones = [&](Expr e) { return pool.Int(-1, e->type); };
  const auto zero = [&](Expr e) { return pool.Int(0, e->type); };
  for (Expr e : {i, x}) {
    EXPECT_EQ(pool.BitAnd(e, ones(e)), e);
    EXPECT_EQ(pool.BitAnd(e, zero(e)), zero(e));
    EXPECT_EQ(pool.BitOr(e, zero(e)), e);
    EXPECT_EQ(pool.BitOr(e, ones(e)), ones(e));
    EXPECT_EQ(pool.Binary(Op::kBitXor, e, e), zero(e));
    EXPECT_EQ(pool.Binary(Op::kBitXor, pool.Binary(Op::kBitXor, e, ones(e)), ones(e)), e);
    EXPECT_EQ(pool.Binary(Op::kShr, e, zero(e)), e);
  }
  EXPECT_EQ(pool.Binary(Op::kBitXor, b, pool.Bool(true)), pool.Not(b));
  EXPECT_EQ(pool.Int(300, kUInt8)->int_value, 44);
  // Operators on indices become affine; operators on data stay operators on bits.
  EXPECT_EQ(pool.Binary(Op::kShl, i, pool.Int(3)), pool.Mul(i, pool.Int(8)));
  EXPECT_EQ(pool.Binary(Op::kShr, i, pool.Int(3)), pool.FloorDiv(i, pool.Int(8)));
  EXPECT_EQ(pool.BitAnd(i, pool.Int(7)), pool.FloorMod(i, pool.Int(8)));
  EXPECT_EQ(pool.BitAnd(x, pool.Int(7, kUInt8))->op, Op::kBitAnd);
}

TEST(ExprTest, IntrinsicNamesParseBack) {
  for (int i = 0; i < 16; ++i) {
    const auto intrinsic = static_cast<Intrinsic>(i);
    ASSERT_OK_AND_ASSIGN(const Intrinsic parsed, ParseIntrinsic(IntrinsicName(intrinsic)));
    EXPECT_EQ(parsed, intrinsic);
  }
  EXPECT_EQ(IntrinsicArity(Intrinsic::kPow), 2);
  EXPECT_THAT(ParseIntrinsic("gelu"), StatusIs(StatusCode::kInvalidArgument, HasSubstr("'gelu'")));
}

TEST(ExprDeathTest, IllTypedNodesAreBugs) {
  ExprPool pool;
  const Expr x = pool.Var(0), f = pool.Float(1);
  EXPECT_DEATH(pool.Add(x, f), "int64 and float32");
  EXPECT_DEATH(pool.Div(x, x), "needs '//'");
  EXPECT_DEATH(pool.And(x, x), "logic on int64");
  EXPECT_DEATH(pool.BitAnd(f, f), "bits of float32");
  EXPECT_DEATH(pool.Select(x, f, f), "choice by int64");
  EXPECT_DEATH(pool.Not(x), "'!' on int64");
  const Expr args[] = {x};
  EXPECT_DEATH(pool.Call(Intrinsic::kExp, args), "exp of int64");
}

}  // namespace
}  // namespace kiln::ir
