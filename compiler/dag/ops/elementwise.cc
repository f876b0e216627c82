// Elementwise functions of one tensor (activations) and of two (with broadcast).
#include <array>

#include "compiler/dag/ops/op.h"

namespace kiln::dag {
namespace {

struct Unary {
  std::string_view name;
  // Name of the operator.
  std::string_view stage;
  // Prefix of its axes.
  std::string_view prefix;
  std::string_view doc;
  Value (*f)(const Value&);
};

Value Relu(const Value& x) { return Max(x, 0); }
Value Relu6(const Value& x) { return Max(Min(x, 6), 0); }
Value LeakyRelu(const Value& x) { return Select(x > 0, x, x * 0.1); }
Value Gelu(const Value& x) { return x * 0.5 * (Erf(x * 0.70710678118654752) + 1.0); }
Value HardSigmoid(const Value& x) { return Max(Min(x + 3.0, 6.0), 0.0) / 6.0; }
Value HardSwish(const Value& x) { return x * Max(Min(x + 3.0, 6.0), 0.0) / 6.0; }
Value Silu(const Value& x) { return x * Sigmoid(x); }
Value Softplus(const Value& x) { return Max(x, 0.0) + Log(Exp(0.0 - Abs(x)) + 1.0); }
Value Elu(const Value& x) { return Select(x > 0, x, Exp(Min(x, 0.0)) - 1.0); }
Value Square(const Value& x) { return x * x; }
Value NegativeOf(const Value& x) { return 0 - x; }
Value ReciprocalOf(const Value& x) { return 1.0 / x; }
Value GeluTanh(const Value& x) {
  return x * 0.5 * (Tanh((x + x * x * x * 0.044715) * 0.7978845608028654) + 1.0);
}
Value Mish(const Value& x) { return x * Tanh(Softplus(x)); }
Value Softsign(const Value& x) { return x / (Abs(x) + 1.0); }
Value Selu(const Value& x) {
  return Select(x > 0, x, (Exp(Min(x, 0.0)) - 1.0) * 1.6732632423543772) * 1.0507009873554805;
}
Value LogSigmoid(const Value& x) { return 0.0 - Softplus(0.0 - x); }
Value Sign(const Value& x) { return Select(x > 0, 1, Select(x < 0, -1, x * 0)); }
Value Sin(const Value& x) { return Call(ir::Intrinsic::kSin, x); }
Value Cos(const Value& x) { return Call(ir::Intrinsic::kCos, x); }
Value Floor(const Value& x) { return Call(ir::Intrinsic::kFloor, x); }
Value Ceil(const Value& x) { return Call(ir::Intrinsic::kCeil, x); }
Value Round(const Value& x) { return Call(ir::Intrinsic::kRound, x); }

const std::array<Unary, 32>& UnaryTable() {
  static const std::array<Unary, 32> table = {{
      {"relu", "T_relu", "ax", "max(x, 0)", Relu},
      {"relu6", "compute", "i", "x clipped to [0, 6]", Relu6},
      {"leaky_relu", "T_leaky_relu", "ax", "x, or 0.1 x where negative", LeakyRelu},
      {"elu", "T_elu", "ax", "x, or exp(x) - 1 where negative", Elu},
      {"sigmoid", "T_sigmoid", "ax", "1 / (1 + exp(-x))", Sigmoid},
      {"tanh", "T_tanh", "ax", "hyperbolic tangent", Tanh},
      {"gelu", "T_gelu", "ax", "x Phi(x), by erf", Gelu},
      {"gelu_tanh", "T_gelu_tanh", "ax", "gelu, approximated by tanh", GeluTanh},
      {"silu", "T_silu", "ax", "x sigmoid(x), also called swish", Silu},
      {"swish", "T_silu", "ax", "the same as silu", Silu},
      {"hard_sigmoid", "T_hard_sigmoid", "ax", "clip(x + 3, 0, 6) / 6", HardSigmoid},
      {"hard_swish", "T_hard_swish", "ax", "x clip(x + 3, 0, 6) / 6", HardSwish},
      {"softplus", "T_softplus", "ax", "log(1 + exp(x))", Softplus},
      {"mish", "T_mish", "ax", "x tanh(softplus(x))", Mish},
      {"selu", "T_selu", "ax", "1.0507 (x, or 1.6733 (exp(x) - 1) where negative)", Selu},
      {"softsign", "T_softsign", "ax", "x / (1 + |x|)", Softsign},
      {"log_sigmoid", "T_log_sigmoid", "ax", "log(sigmoid(x))", LogSigmoid},
      {"exp", "T_exp", "ax", "exponential", Exp},
      {"log", "T_log", "ax", "natural logarithm", Log},
      {"sqrt", "T_sqrt", "ax", "square root", Sqrt},
      {"rsqrt", "T_rsqrt", "ax", "1 / square root", Rsqrt},
      {"erf", "T_erf", "ax", "error function", Erf},
      {"sin", "T_sin", "ax", "sine", Sin},
      {"cos", "T_cos", "ax", "cosine", Cos},
      {"floor", "T_floor", "ax", "rounded down", Floor},
      {"ceil", "T_ceil", "ax", "rounded up", Ceil},
      {"round", "T_round", "ax", "rounded to the nearest whole number, ties to even", Round},
      {"sign", "T_sign", "ax", "-1, 0 or 1", Sign},
      {"abs", "T_abs", "ax", "absolute value", Abs},
      {"square", "T_square", "ax", "x x", Square},
      {"negative", "T_negative", "ax", "-x", NegativeOf},
      {"reciprocal", "T_reciprocal", "ax", "1 / x", ReciprocalOf},
  }};
  return table;
}

const Unary* FindUnary(std::string_view name) {
  for (const Unary& unary : UnaryTable()) {
    if (unary.name == name) return &unary;
  }
  return nullptr;
}

struct BinaryOp {
  std::string_view name;
  std::string_view stage;
  std::string_view doc;
  Value (*f)(const Value&, const Value&);
};

const std::array<BinaryOp, 7> kBinaryTable = {{
    {"add", "T_add", "x + y", [](const Value& x, const Value& y) { return x + y; }},
    {"sub", "T_subtract", "x - y", [](const Value& x, const Value& y) { return x - y; }},
    {"mul", "T_multiply", "x y", [](const Value& x, const Value& y) { return x * y; }},
    {"div", "T_divide", "x / y", [](const Value& x, const Value& y) { return x / y; }},
    {"maximum", "T_maximum", "the larger",
     [](const Value& x, const Value& y) { return Max(x, y); }},
    {"minimum", "T_minimum", "the smaller",
     [](const Value& x, const Value& y) { return Min(x, y); }},
    {"power", "T_power", "x to the y", [](const Value& x, const Value& y) { return Pow(x, y); }},
}};

TensorRef BuildBinary(OpContext& c, std::string_view name) {
  const std::vector<int64_t>& shape = c.args.shape();
  std::vector<int64_t> second = shape;
  for (int64_t axis : c.args.list("broadcast")) {
    if (const std::optional<size_t> at = c.AxisAt("broadcast", axis)) second[*at] = 1;
  }
  TensorRef x = c.Input(shape);
  return ApplyBinary(c, name, x, c.Input(second));
}

TensorRef BiasAdd(OpContext& c) {
  const std::vector<int64_t>& shape = c.args.shape();
  const size_t axis = c.AxisAt("axis", c.args["axis"]).value_or(0);
  std::vector<int64_t> bias(shape.size(), 1);
  bias[axis] = shape[axis];
  TensorRef x = c.Input(shape);
  return ApplyBinary(c, "add", x, c.Input(bias));
}

// A relu that has a slope for negative numbers, one for each channel.
TensorRef Prelu(OpContext& c) {
  const std::vector<int64_t>& shape = c.args.shape();
  const size_t axis = c.AxisAt("axis", c.args["axis"]).value_or(0);
  TensorRef x = c.Input(shape);
  TensorRef slope = c.Input({shape[axis]});
  return c.b.Compute("T_prelu", NumberedAxes("ax", shape), [&](Vars v) {
    return Select(x.At(v) > 0, x.At(v), x.At(v) * slope(v[axis]));
  });
}

OpInfo ChannelOp(std::string name, std::string doc, int64_t axis, TensorRef (*build)(OpContext&)) {
  return {.name = std::move(name),
          .family = "elementwise",
          .doc = std::move(doc),
          .takes_shape = true,
          .parameters = {{.name = "axis",
                          .doc = "axis; negative: from the end",
                          .min = -8,
                          .max = 7,
                          .default_value = axis}},
          .build = build};
}

}  // namespace

bool HasUnary(std::string_view name) { return FindUnary(name) != nullptr; }

std::vector<std::string> UnaryNames() {
  std::vector<std::string> names;
  for (const Unary& unary : UnaryTable()) names.emplace_back(unary.name);
  return names;
}

TensorRef ApplyUnary(OpContext& c, std::string_view name, const TensorRef& x) {
  const Unary* unary = FindUnary(name);
  KILN_CHECK(unary != nullptr, "{}", name);
  return c.b.Compute(std::string(unary->stage), NumberedAxes(unary->prefix, x.shape()),
                     [&](Vars v) { return unary->f(x.At(v)); });
}

Value BroadcastAt(const TensorRef& x, std::span<const int64_t> shape, Vars v) {
  const std::vector<int64_t>& own = x.shape();
  const Vars last = v.last(own.size());
  const std::span<const int64_t> extents = shape.last(own.size());
  std::vector<Value> index;
  for (size_t d = 0; d < own.size(); ++d)
    index.push_back(own[d] == extents[d] ? last[d] : Value(0));
  return x.At(index);
}

TensorRef Converted(OpContext& c, const TensorRef& x, ir::Type type) {
  if (x.type() == type) return x;
  return c.b.Compute("T_cast", NumberedAxes("ax", x.shape()),
                     [&](Vars v) { return Cast(type, x.At(v)); });
}

TensorRef ApplyBinary(OpContext& c, std::string_view name, const TensorRef& x, const TensorRef& y) {
  for (const BinaryOp& op : kBinaryTable) {
    if (op.name != name) continue;
    const std::vector<int64_t> shape = x.shape();
    return c.b.Compute(std::string(op.stage), NumberedAxes("ax", shape), [&](Vars v) {
      std::vector<Value> index;
      for (size_t i = 0; i < v.size(); ++i)
        index.push_back(y.shape()[i] == shape[i] ? v[i] : Value(0));
      return op.f(x.At(v), y.At(index));
    });
  }
  KILN_CHECK(false, "no binary operator {}", name);
  return {};
}

std::vector<OpInfo> UnaryOps() {
  std::vector<OpInfo> ops;
  for (const Unary& unary : UnaryTable()) {
    ops.push_back({.name = std::string(unary.name),
                   .family = "elementwise",
                   .doc = std::string(unary.doc),
                   .takes_shape = true,
                   .parameters = {},
                   .build = [name = unary.name](OpContext& c) {
                     return ApplyUnary(c, name, c.Input(c.args.shape()));
                   }});
  }
  return ops;
}

std::vector<OpInfo> BinaryOps() {
  std::vector<OpInfo> ops;
  for (const BinaryOp& op : kBinaryTable) {
    ops.push_back({.name = std::string(op.name),
                   .family = "elementwise",
                   .doc = std::string(op.doc) + ", elementwise",
                   .takes_shape = true,
                   .parameters = {{.name = "broadcast",
                                   .doc = "axes along which y has extent 1, one broadcast= each",
                                   .min = -8,
                                   .max = 7,
                                   .default_value = std::nullopt,
                                   .list = true}},
                   .build = [name = op.name](OpContext& c) { return BuildBinary(c, name); }});
  }
  ops.push_back(ChannelOp("bias_add", "x + a vector along one axis", -1, BiasAdd));
  ops.push_back(ChannelOp(
      "prelu", "x, or where negative x times a slope from a vector along one axis", -1, Prelu));
  return ops;
}

}  // namespace kiln::dag
