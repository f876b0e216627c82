// Functions of one element, functions of two or three elements with numpy's broadcast, and
// conversions.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "compiler/ir/scalar.h"
#include "graph/op.h"
#include "graph/ops/inputs.h"

namespace kiln::graph {
namespace {

using dag::TensorRef;
using dag::Value;
using dag::Vars;

// Writes the stage of a function of one element. The result is rounded to the type of the input
// unless `result` gives another type.
TensorRef Map(NodeWriter& w, std::string stage, const std::function<Value(const Value&)>& f,
              std::optional<ir::Type> result = std::nullopt) {
  const TensorRef& x = w.input(0);
  const ir::Type type = result.value_or(x.type());
  return w.b.Compute(std::move(stage), dag::NumberedAxes("ax", x.shape()),
                     [&](Vars v) { return Cast(type, f(Widened(x.At(v), x.type()))); });
}

OpDef Unary(std::string name, std::string doc, Domain domain,
            std::function<Value(NodeWriter&, const Value&)> f,
            std::vector<AttributeSpec> attributes = {},
            std::optional<ir::Type> result = std::nullopt) {
  const std::string stage = "T_" + name;
  return {.name = std::move(name),
          .family = "elementwise",
          .doc = std::move(doc),
          .pattern = OpPattern::kElementwise,
          .attributes = std::move(attributes),
          .write = [=](NodeWriter& w) -> std::vector<TensorRef> {
            RequireDomain(w, domain, 0);
            if (!w.b.status().ok()) return {w.input(0)};
            return {Map(w, stage, [&](const Value& x) { return f(w, x); }, result)};
          }};
}

AttributeSpec Number(std::string name, std::string doc, double value) {
  return {.name = std::move(name),
          .kind = AttributeKind::kFloat,
          .doc = std::move(doc),
          .default_value = value};
}

bool IsFloat(const Value& x) { return x.expr() == nullptr || x.expr()->type.is_float(); }

Value NegativePart(const Value& x) { return Exp(Min(x, 0.0)) - 1.0; }

std::vector<OpDef> Activations() {
  std::vector<OpDef> ops;
  const auto floats = [&](std::string name, std::string doc, Value (*f)(const Value&)) {
    ops.push_back(Unary(std::move(name), std::move(doc), Domain::kFloats,
                        [f](NodeWriter&, const Value& x) { return f(x); }));
  };
  ops.push_back(Unary("relu", "max(x, 0)", Domain::kNumbers,
                      [](NodeWriter&, const Value& x) { return Max(x, 0); }));
  floats("sigmoid", "1 / (1 + exp(-x))", dag::Sigmoid);
  floats("tanh", "hyperbolic tangent", dag::Tanh);
  floats("gelu", "x Phi(x), by erf",
         [](const Value& x) { return x * 0.5 * (Erf(x * (1 / std::numbers::sqrt2)) + 1.0); });
  floats("gelu_tanh", "gelu, approximated by tanh", [](const Value& x) {
    return x * 0.5 * (Tanh((x + x * x * x * 0.044715) * 0.7978845608028654) + 1.0);
  });
  floats("silu", "x sigmoid(x)", [](const Value& x) { return x * Sigmoid(x); });
  floats("softplus", "log(1 + exp(x))",
         [](const Value& x) { return Max(x, 0.0) + Log(Exp(0.0 - Abs(x)) + 1.0); });
  floats("mish", "x tanh(softplus(x))",
         [](const Value& x) { return x * Tanh(Max(x, 0.0) + Log(Exp(0.0 - Abs(x)) + 1.0)); });
  floats("softsign", "x / (1 + |x|)", [](const Value& x) { return x / (Abs(x) + 1.0); });
  floats("hard_swish", "x clip(x / 6 + 1/2, 0, 1)",
         [](const Value& x) { return x * Max(Min(x * (1.0 / 6) + 0.5, 1.0), 0.0); });
  ops.push_back(
      Unary("leaky_relu", "x, or alpha x where negative", Domain::kFloats,
            [](NodeWriter& w, const Value& x) { return Select(x < 0.0, x * w.Float("alpha"), x); },
            {Number("alpha", "slope of the negative part", 0.01)}));
  ops.push_back(Unary("elu", "x, or alpha (exp(x) - 1) where negative", Domain::kFloats,
                      [](NodeWriter& w, const Value& x) {
                        return Select(x < 0.0, NegativePart(x) * w.Float("alpha"), x);
                      },
                      {Number("alpha", "scale of the negative part", 1)}));
  ops.push_back(Unary("celu", "max(x, 0) + min(0, alpha (exp(x / alpha) - 1))", Domain::kFloats,
                      [](NodeWriter& w, const Value& x) {
                        const double alpha = w.Float("alpha");
                        return Max(x, 0.0) + Min((Exp(x / alpha) - 1.0) * alpha, 0.0);
                      },
                      {Number("alpha", "scale of the negative part", 1)}));
  ops.push_back(
      Unary("selu", "gamma x, or gamma alpha (exp(x) - 1) where negative", Domain::kFloats,
            [](NodeWriter& w, const Value& x) {
              return Select(x > 0.0, x, NegativePart(x) * w.Float("alpha")) * w.Float("gamma");
            },
            {Number("alpha", "scale of the negative part", 1.6732632423543772),
             Number("gamma", "scale", 1.0507009873554805)}));
  ops.push_back(Unary("hard_sigmoid", "clip(alpha x + beta, 0, 1)", Domain::kFloats,
                      [](NodeWriter& w, const Value& x) {
                        return Max(Min(x * w.Float("alpha") + w.Float("beta"), 1.0), 0.0);
                      },
                      {Number("alpha", "slope", 0.2), Number("beta", "value at 0", 0.5)}));
  ops.push_back(
      Unary("thresholded_relu", "x where it is above alpha, else 0", Domain::kFloats,
            [](NodeWriter& w, const Value& x) { return Select(x > w.Float("alpha"), x, 0.0); },
            {Number("alpha", "threshold", 1)}));
  ops.push_back(
      Unary("shrink", "x - bias above lambda, x + bias below -lambda, else 0", Domain::kFloats,
            [](NodeWriter& w, const Value& x) {
              const double lambda = w.Float("lambda"), bias = w.Float("bias");
              return Select(x < -lambda, x + bias, Select(x > lambda, x - bias, 0.0));
            },
            {Number("lambda", "threshold", 0.5), Number("bias", "what is taken off", 0)}));
  return ops;
}

// Returns arctan of a number in [-1, 1]. The argument is halved twice; then it is below 0.2, and a
// Taylor series is exact to 1e-10.
Value ArcTanOfSmall(const Value& x) {
  const auto halved = [](const Value& t) { return t / (Sqrt(t * t + 1.0) + 1.0); };
  const Value t = halved(halved(x)), s = t * t;
  Value sum = s * (1.0 / 13) - 1.0 / 11;
  for (double denominator : {9.0, -7.0, 5.0, -3.0, 1.0}) sum = sum * s + 1.0 / denominator;
  return sum * t * 4.0;
}
Value ArcTan(const Value& x) {
  const Value inside = Select(Abs(x) > 1.0, 1.0 / x, x), small = ArcTanOfSmall(inside);
  constexpr double kHalfPi = std::numbers::pi / 2;
  return Select(x > 1.0, kHalfPi - small, Select(x < -1.0, -kHalfPi - small, small));
}
// For x of 1 the quotient is infinite, for larger x it is NaN.
Value ArcSin(const Value& x) { return ArcTan(x / Sqrt((1.0 - x) * (x + 1.0))); }
// Computes with the magnitude, so that nothing cancels.
Value ArSinh(const Value& x) {
  const Value a = Abs(x), y = Log(a + Sqrt(a * a + 1.0));
  return Select(x < 0.0, 0.0 - y, y);
}

bool IsUnsigned(const Value& x) { return x.expr() != nullptr && x.expr()->type.is_unsigned(); }

Value Magnitude(const Value& x) { return IsUnsigned(x) ? x : Max(x, 0 - x); }

// Returns the whole number of the type that bounds elements like `value` does. `value` need not be
// in the type: the next number within the bounds is taken.
int64_t WholeBound(double value, bool up, ir::Type type) {
  const int value_bits = type.is_unsigned() ? type.bits : type.bits - 1;
  // The first number that is too large.
  const double end = std::ldexp(1.0, value_bits);
  const double least = type.is_unsigned() ? 0 : -end;
  const double whole = up ? std::ceil(value) : std::floor(value);
  return ir::CastValue(ir::Value::Float(whole > least ? std::min(whole, end) : least), ir::kFloat64,
                       type)
      .i;
}

std::vector<OpDef> Functions() {
  std::vector<OpDef> ops;
  const auto floats = [&](std::string name, std::string doc, Value (*f)(const Value&)) {
    ops.push_back(Unary(std::move(name), std::move(doc), Domain::kFloats,
                        [f](NodeWriter&, const Value& x) { return f(x); }));
  };
  const auto call = [&](std::string name, std::string doc, ir::Intrinsic intrinsic) {
    ops.push_back(Unary(std::move(name), std::move(doc), Domain::kFloats,
                        [=](NodeWriter&, const Value& x) { return Call(intrinsic, x); }));
  };
  floats("exp", "exponential", dag::Exp);
  floats("log", "natural logarithm", dag::Log);
  floats("sqrt", "square root", dag::Sqrt);
  floats("rsqrt", "1 / square root", dag::Rsqrt);
  floats("erf", "error function", dag::Erf);
  call("sin", "sine", ir::Intrinsic::kSin);
  call("cos", "cosine", ir::Intrinsic::kCos);
  floats("tan", "tangent", [](const Value& x) {
    return Call(ir::Intrinsic::kSin, x) / Call(ir::Intrinsic::kCos, x);
  });
  floats("asin", "inverse sine", ArcSin);
  floats("acos", "inverse cosine", [](const Value& x) { return std::numbers::pi / 2 - ArcSin(x); });
  floats("atan", "inverse tangent", ArcTan);
  floats("sinh", "hyperbolic sine", [](const Value& x) { return (Exp(x) - Exp(0.0 - x)) * 0.5; });
  floats("cosh", "hyperbolic cosine", [](const Value& x) { return (Exp(x) + Exp(0.0 - x)) * 0.5; });
  floats("asinh", "inverse hyperbolic sine", ArSinh);
  floats("acosh", "inverse hyperbolic cosine",
         [](const Value& x) { return Log(x + Sqrt(x * x - 1.0)); });
  floats("atanh", "inverse hyperbolic tangent",
         [](const Value& x) { return Log((x + 1.0) / (1.0 - x)) * 0.5; });
  call("floor", "rounded down", ir::Intrinsic::kFloor);
  call("ceil", "rounded up", ir::Intrinsic::kCeil);
  call("round", "rounded to the nearest whole number, ties to even", ir::Intrinsic::kRound);
  floats("reciprocal", "1 / x", [](const Value& x) { return 1.0 / x; });
  const auto numbers = [&](std::string name, std::string doc, Value (*f)(const Value&)) {
    ops.push_back(Unary(std::move(name), std::move(doc), Domain::kNumbers,
                        [f](NodeWriter&, const Value& x) { return f(x); }));
  };
  numbers("sign", "-1, 0 or 1",
          [](const Value& x) { return Select(x > 0, 1, Select(x < 0, -1, x * 0)); });
  numbers("abs", "absolute value",
          [](const Value& x) { return IsFloat(x) ? Abs(x) : Magnitude(x); });
  numbers("square", "x x", [](const Value& x) { return x * x; });
  numbers("negative", "-x", [](const Value& x) { return 0 - x; });
  ops.push_back(Unary("logical_not", "not x", Domain::kBools,
                      [](NodeWriter&, const Value& x) { return !x; }));
  ops.push_back(Unary(
      "is_nan", "is it not a number?", Domain::kFloats,
      [](NodeWriter&, const Value& x) { return x != x; }, {}, ir::kBool));
  const auto flag = [](std::string name) {
    return AttributeSpec{.name = std::move(name),
                         .kind = AttributeKind::kInt,
                         .doc = "1: counts the infinity of that sign",
                         .default_value = int64_t{1}};
  };
  ops.push_back(Unary(
      "is_inf", "is it infinite?", Domain::kFloats,
      [](NodeWriter& w, const Value& x) {
        const Value is_inf = x == x && x - x != 0.0;
        if (w.Int("negative") != 0 && w.Int("positive") != 0) return is_inf;
        return w.Int("positive") != 0   ? is_inf && x > 0.0
               : w.Int("negative") != 0 ? is_inf && x < 0.0
                                        : is_inf && x != x;
      },
      {flag("negative"), flag("positive")}, ir::kBool));
  ops.push_back(Unary(
      "clip", "x, not below min, not above max", Domain::kNumbers,
      [](NodeWriter& w, const Value& x) {
        const auto bound = [&](double value, bool up) -> Value {
          if (w.type().is_float()) return value;
          return WholeBound(value, up, w.type());
        };
        Value y = x;
        if (w.has("min")) y = Max(y, bound(w.Float("min"), true));
        if (w.has("max")) y = Min(y, bound(w.Float("max"), false));
        return y;
      },
      {{.name = "min", .kind = AttributeKind::kFloat, .doc = "the least", .is_optional = true},
       {.name = "max", .kind = AttributeKind::kFloat, .doc = "the largest", .is_optional = true}}));
  return ops;
}

OpDef CastOp() {
  return {.name = "cast",
          .family = "elementwise",
          .doc = "x converted: floats to integers towards zero, anything to bool by `!= 0`",
          .pattern = OpPattern::kElementwise,
          .attributes = {{.name = "to", .kind = AttributeKind::kName, .doc = "type"}},
          .write = [](NodeWriter& w) -> std::vector<TensorRef> {
            const StatusOr<ir::Type> type = ir::ParseType(w.Name("to"));
            if (!type.ok()) {
              w.b.Fail(type.status());
              return {w.input(0)};
            }
            return {w.Converted(w.input(0), *type)};
          }};
}

OpDef ReinterpretOp() {
  return {.name = "reinterpret",
          .family = "elementwise",
          .doc = "the bits of x as those of another type of as many",
          .pattern = OpPattern::kElementwise,
          .attributes = {{.name = "to", .kind = AttributeKind::kName, .doc = "type"}},
          .write = [](NodeWriter& w) -> std::vector<TensorRef> {
            const StatusOr<ir::Type> type = ir::ParseType(w.Name("to"));
            if (!type.ok()) {
              w.b.Fail(type.status());
              return {w.input(0)};
            }
            const TensorRef& x = w.input(0);
            return {w.b.Compute("T_reinterpret", dag::NumberedAxes("ax", x.shape()),
                                [&](Vars v) { return Reinterpret(*type, x.At(v)); })};
          }};
}

using BinaryFunction = Value (*)(const Value&, const Value&);

OpDef Binary(std::string name, std::string stage, std::string doc, Domain domain, BinaryFunction f,
             std::optional<ir::Type> result = std::nullopt) {
  return {.name = std::move(name),
          .family = "elementwise",
          .doc = std::move(doc),
          .pattern = OpPattern::kBroadcast,
          .min_inputs = 2,
          .max_inputs = 2,
          .write = [=](NodeWriter& w) -> std::vector<TensorRef> {
            RequireDomain(w, domain, 0);
            RequireSameTypes(w, 0);
            const std::vector<int64_t> shape = BroadcastShape(w);
            if (!w.b.status().ok()) return {w.input(0)};
            const TensorRef &x = w.input(0), &y = w.input(1);
            const ir::Type type = result.value_or(x.type());
            return {w.b.Compute(stage, dag::NumberedAxes("ax", shape), [&](Vars v) {
              return Cast(type, f(Widened(BroadcastAt(x, shape, v), x.type()),
                                  Widened(BroadcastAt(y, shape, v), y.type())));
            })};
          }};
}

// These two take floats.
Value IsFinite(const Value& x) { return x - x == 0.0; }
Value IsInfinite(const Value& x) { return x == x && x - x != 0.0; }

// Shifts of whole numbers. A count that shifts out all bits leaves zeros, or copies of the sign if
// a signed number moves to the right. A negative count does the same.
Value ShiftLeft(const Value& x, const Value& y) {
  const int64_t bits = x.expr()->type.bits;
  const Value shifted = dag::Binary(ir::Op::kShl, x, Clipped(y, bits));
  return Select(Clipped(y, bits) == y, shifted, x - x);
}
Value ShiftRight(const Value& x, const Value& y) {
  const int64_t bits = x.expr()->type.bits;
  if (!IsUnsigned(x))
    return dag::Binary(ir::Op::kShr, x, Clipped(Select(y < 0, bits - 1, y), bits));
  return Select(Clipped(y, bits) == y, dag::Binary(ir::Op::kShr, x, Clipped(y, bits)), x - x);
}

// Whole numbers are divided by magnitudes, since a divisor must provably not be 0. A division by 0
// gives x, and its remainder is 0.
Value Divisor(const Value& y) { return Max(Magnitude(y), 1); }

// Rounds towards zero, like C.
Value Quotient(const Value& x, const Value& y) {
  if (IsFloat(x)) return x / y;
  const Value divisor = Divisor(y), floor = FloorDiv(x, divisor);
  if (IsUnsigned(x)) return floor;
  // The least number of the type has no magnitude in the type, so x itself is divided.
  const Value q = Select(x < 0 && floor * divisor != x, floor + 1, floor);
  return Select(y < 0, 0 - q, q);
}
// The remainder has the sign of x.
Value TruncatedRemainder(const Value& x, const Value& y) {
  if (IsFloat(x)) {
    const Value q = Call(ir::Intrinsic::kFloor, Abs(x / y));
    const Value r = x - Select(x / y < 0.0, 0.0 - q, q) * y;
    return Select(IsInfinite(y) && !IsInfinite(x), x, r);
  }
  const Value divisor = Divisor(y), r = x % divisor;
  return IsUnsigned(x) ? r : Select(x < 0 && r != 0, r - divisor, r);
}
// The remainder has the sign of y.
Value FlooredRemainder(const Value& x, const Value& y) {
  if (IsFloat(x)) {
    const Value r = x - Call(ir::Intrinsic::kFloor, x / y) * y;
    const Value of_infinity = Select(x == 0.0 || (x < 0.0) == (y < 0.0), x, y);
    return Select(IsInfinite(y) && IsFinite(x), of_infinity, r);
  }
  const Value r = TruncatedRemainder(x, y);
  if (IsUnsigned(x)) return r;
  return Select(r != 0 && (r < 0) != (y < 0), r + y, r);
}

std::vector<OpDef> BinaryFunctions() {
  std::vector<OpDef> ops;
  const auto add = [&](std::string name, std::string stage, std::string doc, Domain domain,
                       BinaryFunction f, std::optional<ir::Type> result = std::nullopt) {
    ops.push_back(Binary(std::move(name), std::move(stage), std::move(doc), domain, f, result));
  };
  using V = const Value&;
  add("add", "T_add", "x + y", Domain::kNumbers, [](V x, V y) { return x + y; });
  add("sub", "T_subtract", "x - y", Domain::kNumbers, [](V x, V y) { return x - y; });
  add("mul", "T_multiply", "x y", Domain::kNumbers, [](V x, V y) { return x * y; });
  add("div", "T_divide", "x / y; whole numbers towards zero", Domain::kNumbers, Quotient);
  add("maximum", "T_maximum", "the larger", Domain::kNumbers, [](V x, V y) { return Max(x, y); });
  add("minimum", "T_minimum", "the smaller", Domain::kNumbers, [](V x, V y) { return Min(x, y); });
  add("power", "T_power", "x to the y", Domain::kFloats, [](V x, V y) { return Pow(x, y); });
  add("mod", "T_mod", "remainder with the sign of y, as Python's %", Domain::kNumbers,
      FlooredRemainder);
  add("fmod", "T_fmod", "remainder with the sign of x, as C's fmod", Domain::kNumbers,
      TruncatedRemainder);
  const auto compare = [&](std::string name, std::string doc, Domain domain, BinaryFunction f) {
    std::string stage = "T_" + name;
    add(std::move(name), std::move(stage), std::move(doc), domain, f, ir::kBool);
  };
  compare("equal", "x == y", Domain::kAny, [](V x, V y) { return x == y; });
  compare("not_equal", "x != y", Domain::kAny, [](V x, V y) { return x != y; });
  compare("less", "x < y", Domain::kNumbers, [](V x, V y) { return x < y; });
  compare("less_equal", "x <= y", Domain::kNumbers, [](V x, V y) { return x <= y; });
  compare("greater", "x > y", Domain::kNumbers, [](V x, V y) { return x > y; });
  compare("greater_equal", "x >= y", Domain::kNumbers, [](V x, V y) { return x >= y; });
  compare("logical_and", "x and y", Domain::kBools, [](V x, V y) { return x && y; });
  compare("logical_or", "x or y", Domain::kBools, [](V x, V y) { return x || y; });
  compare("logical_xor", "one of x and y", Domain::kBools, [](V x, V y) { return x != y; });
  const auto bits = [&](std::string name, std::string doc, BinaryFunction f) {
    std::string stage = "T_" + name;
    add(std::move(name), std::move(stage), std::move(doc), Domain::kWholeNumbers, f);
  };
  bits("bitwise_and", "bits that x and y both have",
       [](V x, V y) { return dag::Binary(ir::Op::kBitAnd, x, y); });
  bits("bitwise_or", "bits that x or y has",
       [](V x, V y) { return dag::Binary(ir::Op::kBitOr, x, y); });
  bits("bitwise_xor", "bits that one of x and y has",
       [](V x, V y) { return dag::Binary(ir::Op::kBitXor, x, y); });
  bits("shift_left", "bits of x moved y places up, zeros moving in", ShiftLeft);
  bits("shift_right", "bits of x moved y places down, the sign's or zeros moving in", ShiftRight);
  add("prelu", "T_prelu", "x, or x times a slope where negative", Domain::kNumbers,
      [](V x, V slope) { return Select(x < 0, x * slope, x); });
  return ops;
}

OpDef Where() {
  return {.name = "where",
          .family = "elementwise",
          .doc = "x where the condition holds, else y",
          .pattern = OpPattern::kBroadcast,
          .min_inputs = 3,
          .max_inputs = 3,
          .write = [](NodeWriter& w) -> std::vector<TensorRef> {
            RequireDomain(w, Domain::kBools, 0);
            RequireSameTypes(w, 1);
            const std::vector<int64_t> shape = BroadcastShape(w);
            if (!w.b.status().ok()) return {w.input(1)};
            return {w.b.Compute("T_where", dag::NumberedAxes("ax", shape), [&](Vars v) {
              return Select(BroadcastAt(w.input(0), shape, v), BroadcastAt(w.input(1), shape, v),
                            BroadcastAt(w.input(2), shape, v));
            })};
          }};
}

OpDef Identity() {
  OpDef op =
      Unary("identity", "x itself", Domain::kAny, [](NodeWriter&, const Value& x) { return x; });
  op.is_view = true;
  return op;
}

}  // namespace

std::vector<OpDef> ElementwiseOps() {
  std::vector<OpDef> all = Activations();
  for (std::vector<OpDef> more : {Functions(), BinaryFunctions()}) {
    for (OpDef& op : more) all.push_back(std::move(op));
  }
  for (OpDef (*one)() : {CastOp, ReinterpretOp, Where, Identity}) all.push_back(one());
  return all;
}

}  // namespace kiln::graph
