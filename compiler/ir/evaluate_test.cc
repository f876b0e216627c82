#include "compiler/ir/evaluate.h"

#include <cmath>
#include <limits>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "compiler/ir/integer_ops.h"
#include "compiler/ir/random_expr_testing.h"

namespace kiln::ir {
namespace {
using testing::HasSubstr;

// Returns a value for any index, so that random expressions never leave a buffer.
class EndlessBuffers : public LoadSource {
 public:
  explicit EndlessBuffers(std::vector<RandomSlot> slots) : slots_(std::move(slots)) {}
  Status Load(int32_t slot, std::span<const int64_t> indices, Value* value) override {
    ++loads;
    uint64_t hash = static_cast<uint64_t>(slot);
    for (int64_t i : indices) hash = MixBits(hash ^ static_cast<uint64_t>(i));
    const Type type = slots_[static_cast<size_t>(slot)].type;
    const auto small = static_cast<int64_t>(hash % 64) - 32;
    *value = CastValue(Value::Float(static_cast<double>(small) / 4), kFloat64, type);
    return OkStatus();
  }
  int loads = 0;

 private:
  std::vector<RandomSlot> slots_;
};

// Evaluates by the rules of expr.h, word for word.
Value Naive(Expr e, std::span<const Value> vars, LoadSource& loads) {
  auto arg = [&](int i) { return Naive(e->arg(i), vars, loads); };
  auto integer = [&](int64_t v) { return Value::Int(WrapToType(v, e->type)); };
  auto carried = [&](double v) {
    return Value::Float(e->type == kFloat64 ? v : static_cast<float>(v));
  };
  switch (e->op) {
    case Op::kInt:
      return Value::Int(e->int_value);
    case Op::kFloat:
      return Value::Float(e->float_value);
    case Op::kVar:
      return vars[static_cast<size_t>(e->id)];
    case Op::kAnd:
      return arg(0).i ? arg(1) : Value::Int(0);
    case Op::kOr:
      return arg(0).i ? Value::Int(1) : arg(1);
    case Op::kNot:
      return Value::Int(!arg(0).i);
    case Op::kSelect:
    case Op::kIf:
      return arg(0).i ? arg(1) : arg(2);
    case Op::kCast:
      return CastValue(arg(0), e->arg(0)->type, e->type);
    case Op::kLoad: {
      std::vector<int64_t> indices;
      for (int i = 0; i < e->num_args; ++i) indices.push_back(arg(i).i);
      Value value;
      KILN_CHECK(loads.Load(e->id, indices, &value).ok());
      return value;
    }
    case Op::kCall: {
      const Value x = arg(0);
      if (e->type.is_int())
        return integer(x.i < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(x.i)) : x.i);
      switch (e->intrinsic()) {
        case Intrinsic::kExp:
          return carried(std::exp(x.f));
        case Intrinsic::kLog:
          return carried(std::log(x.f));
        case Intrinsic::kSqrt:
          return carried(std::sqrt(x.f));
        case Intrinsic::kRsqrt:
          return carried(1 / std::sqrt(x.f));
        case Intrinsic::kTanh:
          return carried(std::tanh(x.f));
        case Intrinsic::kSigmoid:
          return carried(1 / (1 + std::exp(-x.f)));
        case Intrinsic::kErf:
          return carried(std::erf(x.f));
        case Intrinsic::kPow:
          return carried(std::pow(x.f, arg(1).f));
        case Intrinsic::kAbs:
          return carried(std::fabs(x.f));
        case Intrinsic::kFloor:
          return carried(std::floor(x.f));
        case Intrinsic::kCeil:
          return carried(std::ceil(x.f));
        case Intrinsic::kRound:
          return carried(std::rint(x.f));
        case Intrinsic::kSin:
          return carried(std::sin(x.f));
        case Intrinsic::kCos:
          return carried(std::cos(x.f));
        case Intrinsic::kExp2:
          return carried(std::exp2(x.f));
        case Intrinsic::kLog2:
          return carried(std::log2(x.f));
      }
      break;
    }
    default:
      break;
  }
  const Value a = arg(0), b = arg(1);
  if (e->arg(0)->type.is_float()) {
    switch (e->op) {
      case Op::kAdd:
        return carried(a.f + b.f);
      case Op::kSub:
        return carried(a.f - b.f);
      case Op::kMul:
        return carried(a.f * b.f);
      case Op::kDiv:
        return carried(a.f / b.f);
      case Op::kFloorDiv:
        return carried(std::floor(a.f / b.f));
      case Op::kFloorMod: {
        const double r = std::fmod(a.f, b.f);
        return carried(r != 0 && (r < 0) != (b.f < 0) ? r + b.f : r);
      }
      case Op::kMin:
        if (std::isnan(a.f) || std::isnan(b.f)) return carried(a.f + b.f);
        if (a.f == b.f) return carried(std::signbit(a.f) ? a.f : b.f);
        return carried(std::min(a.f, b.f));
      case Op::kMax:
        if (std::isnan(a.f) || std::isnan(b.f)) return carried(a.f + b.f);
        if (a.f == b.f) return carried(std::signbit(a.f) ? b.f : a.f);
        return carried(std::max(a.f, b.f));
      case Op::kEq:
        return Value::Int(a.f == b.f);
      case Op::kNe:
        return Value::Int(a.f != b.f);
      case Op::kLt:
        return Value::Int(a.f < b.f);
      case Op::kLe:
        return Value::Int(a.f <= b.f);
      case Op::kGt:
        return Value::Int(a.f > b.f);
      default:
        return Value::Int(a.f >= b.f);
    }
  }
  const auto ua = static_cast<uint64_t>(a.i), ub = static_cast<uint64_t>(b.i);
  if (e->arg(0)->type == kUInt64) {
    switch (e->op) {
      case Op::kFloorDiv:
        return integer(static_cast<int64_t>(ua / ub));
      case Op::kFloorMod:
        return integer(static_cast<int64_t>(ua % ub));
      case Op::kMin:
        return integer(static_cast<int64_t>(std::min(ua, ub)));
      case Op::kMax:
        return integer(static_cast<int64_t>(std::max(ua, ub)));
      case Op::kLt:
        return Value::Int(ua < ub);
      case Op::kLe:
        return Value::Int(ua <= ub);
      case Op::kGt:
        return Value::Int(ua > ub);
      case Op::kGe:
        return Value::Int(ua >= ub);
      case Op::kShr:
        return integer(static_cast<int64_t>(ua >> ub));
      default:
        break;
    }
  }
  switch (e->op) {
    case Op::kAdd:
      return integer(static_cast<int64_t>(ua + ub));
    case Op::kSub:
      return integer(static_cast<int64_t>(ua - ub));
    case Op::kMul:
      return integer(static_cast<int64_t>(ua * ub));
    case Op::kFloorDiv:
      return integer(FloorDiv(a.i, b.i));
    case Op::kFloorMod:
      return integer(FloorMod(a.i, b.i));
    case Op::kMin:
      return integer(std::min(a.i, b.i));
    case Op::kMax:
      return integer(std::max(a.i, b.i));
    case Op::kEq:
      return Value::Int(a.i == b.i);
    case Op::kNe:
      return Value::Int(a.i != b.i);
    case Op::kLt:
      return Value::Int(a.i < b.i);
    case Op::kLe:
      return Value::Int(a.i <= b.i);
    case Op::kGt:
      return Value::Int(a.i > b.i);
    case Op::kBitAnd:
      return Value::Int(a.i & b.i);
    case Op::kBitOr:
      return Value::Int(a.i | b.i);
    case Op::kBitXor:
      return Value::Int(a.i ^ b.i);
    case Op::kShl:
      return integer(static_cast<int64_t>(ua << b.i));
    case Op::kShr:
      return integer(a.i >> b.i);
    default:
      return Value::Int(a.i >= b.i);
  }
}

bool SameValue(Value a, Value b, Type type) {
  if (!type.is_float()) return a.i == b.i;
  if (std::isnan(a.f) || std::isnan(b.f)) return std::isnan(a.f) && std::isnan(b.f);
  return a.f == b.f && std::signbit(a.f) == std::signbit(b.f);
}

TEST(EvaluateTest, UnsignedTypesWrapAround) {
  ExprPool pool;
  const Value vars[] = {Value::Int(200), Value::Int(100)};
  const Expr a = pool.Var(0, kUInt8), b = pool.Var(1, kUInt8);
  const auto value = [&](Expr e) { return EvaluateExpr(e, vars)->i; };
  EXPECT_EQ(value(pool.Add(a, b)), 44);
  EXPECT_EQ(value(pool.Sub(b, a)), 156);
  EXPECT_EQ(value(pool.Mul(a, b)), 20000 % 256);
  EXPECT_EQ(value(pool.Binary(Op::kShl, a, pool.Int(1, kUInt8))), 144);
  EXPECT_EQ(value(pool.Binary(Op::kShr, a, pool.Int(3, kUInt8))), 25);
  EXPECT_EQ(value(pool.Binary(Op::kBitXor, a, pool.Int(-1, kUInt8))), 55);
  EXPECT_EQ(value(pool.Cast(kInt8, a)), -56);
  EXPECT_EQ(value(pool.Cast(kUInt32, pool.Cast(kInt8, a))), 4294967240);
}

// A uint64 with its highest bit set is a large number, whether it is folded or computed.
TEST(EvaluateTest, LargeUnsignedNumbers) {
  ExprPool pool;
  constexpr uint64_t kLarge = UINT64_MAX - 5;
  const Value vars[] = {Value::Int(static_cast<int64_t>(kLarge)), Value::Int(7)};
  const Expr constants[] = {pool.Int(vars[0].i, kUInt64), pool.Int(7, kUInt64)};
  const Expr variables[] = {pool.Var(0, kUInt64), pool.Var(1, kUInt64)};
  for (const auto& [a, b] :
       {std::pair(constants[0], constants[1]), std::pair(variables[0], variables[1])}) {
    const auto value = [&](Expr e) { return static_cast<uint64_t>(EvaluateExpr(e, vars)->i); };
    EXPECT_EQ(value(pool.FloorDiv(a, b)), kLarge / 7);
    EXPECT_EQ(value(pool.FloorMod(a, b)), kLarge % 7);
    EXPECT_EQ(value(pool.Max(a, b)), kLarge);
    EXPECT_EQ(value(pool.Min(a, b)), 7u);
    EXPECT_EQ(value(pool.Lt(a, b)), 0u);
    EXPECT_EQ(value(pool.Ge(a, b)), 1u);
    EXPECT_EQ(value(pool.Binary(Op::kShr, a, b)), kLarge >> 7);
    EXPECT_EQ(value(pool.Add(a, b)), 1u);
    EXPECT_EQ(value(pool.Cast(kInt64, a)), kLarge);
    EXPECT_EQ(EvaluateExpr(pool.Cast(kFloat64, a), vars)->f, 0x1p64);
    EXPECT_EQ(value(pool.Cast(kUInt64, pool.Cast(kInt8, a))), kLarge);
  }
}

TEST(EvaluateTest, BitsOfOtherTypes) {
  ExprPool pool;
  const auto bits = [&](Type from, Type to, Value value) {
    const Value vars[] = {value};
    return *EvaluateExpr(pool.Reinterpret(to, pool.Var(0, from)), vars);
  };
  EXPECT_EQ(bits(kFloat32, kInt32, Value::Float(1)).i, 0x3f800000);
  EXPECT_EQ(bits(kFloat32, kInt32, Value::Float(-0.0)).i, INT32_MIN);
  EXPECT_EQ(bits(kInt32, kFloat32, Value::Int(0x40490fdb)).f, 0x1.921fb6p1);
  EXPECT_EQ(bits(kFloat64, kUInt64, Value::Float(-2)).i, INT64_MIN + (int64_t{1} << 62));
  // The value is rounded to float16 first.
  EXPECT_EQ(bits(kFloat16, kUInt16, Value::Float(1.0001)).i, 0x3c00);
  EXPECT_EQ(bits(kUInt16, kBFloat16, Value::Int(0x3f80)).f, 1);
  EXPECT_EQ(bits(kUInt8, kFloat8E4M3, Value::Int(0x38)).f, 1);
  EXPECT_EQ(pool.Reinterpret(kInt32, pool.Float(1, kFloat32)), pool.Int(0x3f800000, kInt32));
  EXPECT_EQ(pool.Reinterpret(kUInt32, pool.Var(0, kInt32)),
            pool.Cast(kUInt32, pool.Var(0, kInt32)));
}

TEST(EvaluateTest, ShiftsBeyondTheTypeHaveNoValue) {
  ExprPool pool;
  const Expr x = pool.Var(0, kInt16);
  for (int64_t count : {-1, 16}) {
    const Value vars[] = {Value::Int(count)};
    EXPECT_THAT(EvaluateExpr(pool.Binary(Op::kShl, pool.Int(1, kInt16), x), vars),
                StatusIs(StatusCode::kInvalidArgument, testing::HasSubstr("int16 has 16 bits")));
  }
}

TEST(EvaluateTest, RandomExpressionsFollowTheSpecification) {
  const std::vector<RandomSlot> slots = {{kFloat32, 2},    {kInt32, 1},     {kFloat16, 1},
                                         {kBool, 1},       {kBFloat16, 0},  {kFloat64, 3},
                                         {kFloat8E4M3, 1}, {kFloat8E5M2, 2}};
  EndlessBuffers loads(slots);
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    ExprPool pool;
    RandomExprs make(pool, rng, 3, slots);
    Expr e = make.Make(make.AnyType(), 5);
    CompiledExpr compiled(e);
    for (int round = 0; round < 2; ++round) {
      const Value vars[] = {Value::Int(UniformIn(rng, -5, 5)), Value::Int(UniformIn(rng, -5, 5)),
                            Value::Int(UniformIn(rng, -5, 5))};
      Value value;
      ASSERT_OK(compiled.Run(vars, &loads, &value));
      ASSERT_TRUE(SameValue(value, Naive(e, vars, loads), e->type))
          << value.i << " " << value.f << " " << TypeName(e->type);
    }
  }
}

Value ValueOf(Expr e) {
  auto result = EvaluateExpr(e, {});
  KILN_CHECK(result.ok());
  return *result;
}

TEST(EvaluateTest, Float32IsRoundedAtEachOperationFloat16IsCarried) {
  ExprPool pool;
  const Expr big = pool.Float(16777216), one = pool.Float(1);
  EXPECT_EQ(ValueOf(pool.Add(pool.Add(big, one), one)).f, 16777216);
  const Expr big64 = pool.Float(16777216, kFloat64), one64 = pool.Float(1, kFloat64);
  EXPECT_EQ(ValueOf(pool.Add(pool.Add(big64, one64), one64)).f, 16777218);
  const Expr h = pool.Float(2048, kFloat16), h1 = pool.Float(1, kFloat16);
  EXPECT_EQ(ValueOf(pool.Add(pool.Add(h, h1), h1)).f, 2050);
  EXPECT_EQ(ValueOf(pool.Cast(kFloat32, pool.Add(h, h1))).f, 2049);
}

TEST(EvaluateTest, MinimumAndMaximumOfNaNAndZeros) {
  ExprPool pool;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Type type : {kFloat16, kBFloat16, kFloat32, kFloat64}) {
    const auto of = [&](Op op, double a, double b) {
      return ValueOf(pool.Binary(op, pool.Float(a, type), pool.Float(b, type))).f;
    };
    for (const Op op : {Op::kMin, Op::kMax}) {
      for (const double x : std::initializer_list<double>{1, -INFINITY, INFINITY, nan}) {
        EXPECT_TRUE(std::isnan(of(op, nan, x)));
        EXPECT_TRUE(std::isnan(of(op, x, nan)));
      }
    }
    for (const auto& [a, b] : {std::pair{0.0, -0.0}, {-0.0, 0.0}}) {
      EXPECT_TRUE(std::signbit(of(Op::kMin, a, b)));
      EXPECT_FALSE(std::signbit(of(Op::kMax, a, b)));
    }
    EXPECT_TRUE(std::signbit(of(Op::kMax, -0.0, -0.0)));
    EXPECT_FALSE(std::signbit(of(Op::kMin, 0.0, 0.0)));
    EXPECT_EQ(of(Op::kMax, -INFINITY, -2), -2);
    EXPECT_EQ(of(Op::kMin, INFINITY, 2), 2);
  }
}

TEST(EvaluateTest, DivisionByZeroIsAnError) {
  ExprPool pool;
  const Expr x = pool.Var(0);
  const Value zero[] = {Value::Int(0)};
  EXPECT_THAT(EvaluateExpr(pool.FloorDiv(pool.Int(7), x), zero),
              StatusIs(StatusCode::kInvalidArgument, "7 // 0 has no value"));
  EXPECT_THAT(EvaluateExpr(pool.FloorMod(pool.Int(7), x), zero),
              StatusIs(StatusCode::kInvalidArgument, "7 % 0 has no value"));
}

// Returns an error for negative indices.
class Guarded : public LoadSource {
 public:
  Status Load(int32_t slot, std::span<const int64_t> indices, Value* value) override {
    if (indices[0] < 0) return OutOfRange("slot {} index {}", slot, indices[0]);
    *value = Value::Float(static_cast<double>(indices[0]));
    ++loads;
    return OkStatus();
  }
  int loads = 0;
};

TEST(EvaluateTest, IfAndLogicAreLazySelectIsNot) {
  ExprPool pool;
  const Expr x = pool.Var(0), inside = pool.Ge(x, pool.Int(0));
  const Expr index[] = {x};
  const Expr load = pool.Load(4, index, kFloat32), zero = pool.Float(0);
  const Expr positive = pool.Binary(Op::kGt, load, zero);
  const Value minus[] = {Value::Int(-1)}, two[] = {Value::Int(2)};
  Guarded loads;
  ASSERT_OK_AND_ASSIGN(Value v, EvaluateExpr(pool.If(inside, load, zero), minus, &loads));
  EXPECT_EQ(v.f, 0);
  ASSERT_OK_AND_ASSIGN(v, EvaluateExpr(pool.If(inside, load, zero), two, &loads));
  EXPECT_EQ(v.f, 2);
  ASSERT_OK_AND_ASSIGN(v, EvaluateExpr(pool.And(inside, positive), minus, &loads));
  EXPECT_EQ(v.i, 0);
  ASSERT_OK_AND_ASSIGN(v, EvaluateExpr(pool.Or(pool.Not(inside), positive), minus, &loads));
  EXPECT_EQ(v.i, 1);
  EXPECT_THAT(EvaluateExpr(pool.Select(inside, load, zero), minus, &loads),
              StatusIs(StatusCode::kOutOfRange, "slot 4 index -1"));
}

TEST(EvaluateTest, SharedNodesAreComputedOnceAndOnlyWhenReached) {
  ExprPool pool;
  const Expr x = pool.Var(0);
  const Expr index[] = {x};
  Expr e = pool.Load(0, index, kFloat32);
  // The expression is a tree of 2^64 leaves.
  for (int i = 0; i < 64; ++i) e = pool.Add(e, e);
  Guarded loads;
  const Value one[] = {Value::Int(1)};
  CompiledExpr compiled(e);
  for (int run = 1; run <= 2; ++run) {
    Value v;
    ASSERT_OK(compiled.Run(one, &loads, &v));
    EXPECT_EQ(v.f, 0x1p64);
    EXPECT_EQ(loads.loads, run);
  }
  // The first use of the shared node stands in the side that is not taken.
  const Expr shared = pool.Mul(pool.Load(0, index, kFloat32), pool.Float(3));
  const Expr both = pool.If(pool.Binary(Op::kEq, x, pool.Int(5)), pool.Add(shared, pool.Float(1)),
                            pool.Sub(shared, pool.Float(1)));
  ASSERT_OK_AND_ASSIGN(Value v, EvaluateExpr(both, one, &loads));
  EXPECT_EQ(v.f, 2);
}

TEST(EvaluateTest, MissingInputsAreErrors) {
  ExprPool pool;
  const Value one[] = {Value::Int(1)};
  EXPECT_THAT(EvaluateExpr(pool.Var(1), one),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("variable 1 has no value")));
  EXPECT_THAT(EvaluateExpr(pool.Load(0, {}, kFloat32), one),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("nothing to load from")));
}

}  // namespace
}  // namespace kiln::ir
