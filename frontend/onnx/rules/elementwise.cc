// Functions of one element, and of several elements with broadcast.
#include <cmath>
#include <limits>
#include <optional>

#include "compiler/ir/scalar.h"
#include "frontend/onnx/element_type.h"
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

// Rule for an operator on floats that has another name in the graph.
Rule OfFloat(std::string op, std::string name) {
  return {std::move(op), [name = std::move(name)](NodeContext& n) {
            n.RequireFloat(0);
            n.SetOutput(n.Emit(name, {n.input(0)}));
          }};
}

// Rule for an operator on all numbers that has another name in the graph.
Rule OfNumber(std::string op, std::string name) {
  return {std::move(op), [name = std::move(name)](NodeContext& n) {
            n.RequireRank(0, 0);
            n.SetOutput(n.Emit(name, {n.input(0)}));
          }};
}

// A numeric attribute of a function, with its names in ONNX and in the graph.
struct Parameter {
  std::string onnx_name, name;
  // The default.
  double value;
};
Rule WithParameters(std::string op, std::string name, std::vector<Parameter> parameters) {
  return {std::move(op), [name = std::move(name), parameters](NodeContext& n) {
            n.RequireFloat(0);
            graph::Attributes attributes;
            for (const Parameter& p : parameters)
              attributes[p.name] = n.Float(p.onnx_name, p.value);
            n.SetOutput(n.Emit(name, {n.input(0)}, std::move(attributes)));
          }};
}

// Returns the second operand. Before version 7 an attribute said whether it was broadcast, from
// `axis` on.
Tensor AlignedOperand(NodeContext& n) {
  const Tensor &x = n.input(0), &y = n.input(1);
  if (n.version() >= 7 || n.Int("broadcast", 0) == 0 || y.rank() == 0) return y;
  const int64_t axis = n.has("axis") ? n.Axis(n.Int("axis", 0), x.rank()) : x.rank() - y.rank();
  Shape shape = y.shape();
  while (!n.failed() && axis + std::ssize(shape) < x.rank()) shape.push_back(1);
  return n.Reshape(y, std::move(shape));
}

Rule Binary(std::string op, std::string name) {
  return {std::move(op), [name = std::move(name)](NodeContext& n) {
            n.RequireRank(0, 0);
            n.RequireRank(1, 0);
            if (n.failed()) return;
            n.SetOutput(n.Emit(name, {n.input(0), AlignedOperand(n)}));
          }};
}

// Writes x op y op ... for any number of operands.
Tensor Chain(NodeContext& n, const std::string& name) {
  n.RequireRank(0, 0);
  Tensor y = n.input(0);
  for (int i = 1; i < n.num_inputs(); ++i) y = n.Emit(name, {y, n.input(i)});
  return y;
}
Rule Variadic(std::string op, std::string name) {
  return {std::move(op), [name = std::move(name)](NodeContext& n) { n.SetOutput(Chain(n, name)); }};
}
void Mean(NodeContext& n) {
  const Tensor sum = Chain(n, "add");
  n.SetOutput(n.Div(sum, n.ScalarLike(sum, n.num_inputs())));
}

// Returns the element of a constant that has only one.
std::optional<double> KnownScalar(const Tensor& x) {
  if (!x.is_known() || x.num_elements() != 1) return std::nullopt;
  return x.constant->At(0);
}

// Returns a power that is a product, a root or a quotient; otherwise nullopt.
std::optional<Tensor> SimplePower(NodeContext& n, const Tensor& x, double exponent) {
  const bool is_float = x.element().is_float();
  if (exponent == 1) return x;
  if (exponent == 2) return n.Emit("square", {x});
  if (exponent == 3) return n.Mul(n.Emit("square", {x}), x);
  if (exponent == 0.5 && is_float) return n.Emit("sqrt", {x});
  if (exponent == -0.5 && is_float) return n.Emit("rsqrt", {x});
  if (exponent == -1 && is_float) return n.Emit("reciprocal", {x});
  return std::nullopt;
}

// The result has the type of the base. Whole numbers go through float64, which is exact up to 2^53.
void Pow(NodeContext& n) {
  n.RequireRank(0, 0);
  n.RequireRank(1, 0);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const Tensor y = AlignedOperand(n);
  if (const std::optional<double> exponent = KnownScalar(y); exponent && y.rank() <= x.rank()) {
    if (const std::optional<Tensor> power = SimplePower(n, x, *exponent))
      return n.SetOutput(*power);
  }
  const ir::Type type = x.element().is_float() ? x.element() : ir::kFloat64;
  Tensor power = n.Emit("power", {n.Cast(x, type), n.Cast(y, type)});
  n.SetOutput(n.Cast(power, x.element()));
}

void Mod(NodeContext& n) {
  n.RequireRank(0, 0);
  n.SetOutput(n.Emit(n.Int("fmod", 0) != 0 ? "fmod" : "mod", {n.input(0), n.input(1)}));
}

// Slopes of the first versions belong to the channels, axis 1.
void PRelu(NodeContext& n) {
  n.RequireRank(0, 0);
  n.RequireRank(1, 0);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  Tensor slope = n.input(1);
  if (n.version() < 7 && slope.rank() == 1 && x.rank() > 2) {
    Shape shape(static_cast<size_t>(x.rank() - 1), 1);
    shape[0] = slope.dim(0);
    slope = n.Reshape(slope, std::move(shape));
  }
  n.SetOutput(n.Emit("prelu", {x, slope}));
}

void Where(NodeContext& n) { n.SetOutput(n.Where(n.input(0), n.input(1), n.input(2))); }

void BitwiseNot(NodeContext& n) {
  n.RequireRank(0, 0);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const bool is_unsigned = x.element().is_unsigned();
  const double all = is_unsigned ? std::ldexp(1.0, x.element().bits) - 1 : -1;
  n.SetOutput(n.Sub(n.ScalarLike(x, all), x));
}

void BitShift(NodeContext& n) {
  n.RequireRank(0, 0);
  n.RequireRank(1, 0);
  const std::string direction = n.Text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    n.Invalid("attribute direction is '{}', expected LEFT or RIGHT", direction);
  if (n.failed()) return;
  n.SetOutput(n.Emit(direction == "LEFT" ? "shift_left" : "shift_right", {n.input(0), n.input(1)}));
}

// Reinterprets the bits as another type of the same size. A bool is the byte 0 or 1.
void BitCast(NodeContext& n) {
  n.RequireRank(0, 0);
  const int64_t to = n.Int("to", 0);
  if (n.failed()) return;
  const StatusOr<ir::Type> type = ElementType(static_cast<int>(std::clamp<int64_t>(to, -1, 1000)));
  if (!type.ok()) return n.Fail(type.status());
  const ir::Type from = n.input(0).element();
  if (from.bytes() != type->bytes()) {
    return n.Invalid("it makes {} of {}, expected a type of {} bytes", ir::TypeName(*type),
                     ir::TypeName(from), from.bytes());
  }
  if (type->is_bool() && !from.is_bool()) {
    return n.Unsupported("it reads the bits of {} as bool: compare with 0 instead",
                         ir::TypeName(from));
  }
  // Conversions between whole numbers keep the bits.
  if (from == *type || (!from.is_float() && type->is_int()))
    return n.SetOutput(n.Cast(n.input(0), *type));
  const Tensor x = from.is_bool() ? n.Cast(n.input(0), ir::kUInt8) : n.input(0);
  n.SetOutput(n.Emit("reinterpret", {x}, {{"to", std::string(ir::TypeName(*type))}}));
}

// Bounds are attributes before version 11.
void Clip(NodeContext& n) {
  n.RequireRank(0, 0);
  if (n.failed()) return;
  Tensor y = n.input(0);
  graph::Attributes bounds;
  const std::string names[] = {std::string("min"), std::string("max")};
  for (int i = 0; i < 2; ++i) {
    const std::string& name = names[i];
    if (n.version() < 11 && n.has(name)) bounds[name] = n.Float(name, 0);
    if (n.version() < 11 || !n.has_input(i + 1)) continue;
    if (const std::optional<double> value = KnownScalar(n.input(i + 1))) bounds[name] = *value;
  }
  if (!bounds.empty()) y = n.Emit("clip", {y}, bounds);
  // These bounds are computed.
  for (int i = 0; n.version() >= 11 && i < 2; ++i) {
    if (!n.has_input(i + 1) || bounds.contains(names[i])) continue;
    y = n.Emit(i == 0 ? "maximum" : "minimum", {y, n.input(i + 1)});
  }
  n.SetOutput(y);
}

void IsInf(NodeContext& n) {
  n.RequireFloat(0);
  n.SetOutput(n.Emit(
      "is_inf", {n.input(0)},
      {{"negative", n.Int("detect_negative", 1)}, {"positive", n.Int("detect_positive", 1)}}));
}

// Multiplies one input by a Swish of the other one, the gate.
void SwiGlu(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(1, 0);
  if (n.failed()) return;
  const Tensor& gate = n.input(0);
  const double alpha = n.Float("alpha", 1);
  const Tensor scaled = alpha == 1 ? gate : n.Mul(gate, n.ScalarLike(gate, alpha));
  n.SetOutput(n.Mul(n.Mul(gate, n.Emit("sigmoid", {scaled})), n.input(1)));
}

void Gelu(NodeContext& n) {
  n.RequireFloat(0);
  const std::string approximate = n.Text("approximate", "none");
  n.SetOutput(n.Emit(approximate == "tanh" ? "gelu_tanh" : "gelu", {n.input(0)}));
}

// Computes x sigmoid(alpha x).
void Swish(NodeContext& n) {
  n.RequireFloat(0);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const double alpha = n.Float("alpha", 1);
  const Tensor scaled = alpha == 1 ? x : n.Mul(x, n.ScalarLike(x, alpha));
  n.SetOutput(n.Mul(x, n.Emit("sigmoid", {scaled})));
}

// The first versions give types as texts: "FLOAT".
std::optional<int> TypeOfText(const std::string& text) {
  ::onnx::TensorProto::DataType type = ::onnx::TensorProto::UNDEFINED;
  if (!::onnx::TensorProto::DataType_Parse(text, &type)) return std::nullopt;
  return type;
}

// Returns x converted to a type. Conversions to 8-bit floats saturate. If saturation is turned off,
// a number that is too large becomes NaN in float8_e4m3fn; in float8_e5m2 it would be infinite,
// which Kiln does not make.
Tensor Converted(NodeContext& n, const Tensor& x, ir::Type to) {
  if (n.Int("saturate", 1) != 0 || ir::Float8FormatOf(to) == nullptr) return n.Cast(x, to);
  if (to != ir::kFloat8E4M3) {
    n.Unsupported("saturate is 0, and casts to {} saturate: Kiln makes no infinities of 8 bits",
                  ir::TypeName(to));
    return x;
  }
  // Half way from the largest number, 448, to the number that would follow it.
  constexpr double kLastThatFits = 464;
  const Tensor wide = x.element().is_float() ? x : n.Cast(x, ir::kFloat32);
  const Tensor fits =
      n.Emit("less_equal", {n.Emit("abs", {wide}), n.ScalarLike(wide, kLastThatFits)});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return n.Cast(n.Where(fits, wide, n.ScalarLike(wide, nan)), to);
}

void CastTo(NodeContext& n, int onnx_type) {
  const StatusOr<ir::Type> type = ElementType(onnx_type);
  if (!type.ok()) return n.Fail(type.status());
  n.SetOutput(Converted(n, n.input(0), *type));
}

void Cast(NodeContext& n) {
  n.RequireRank(0, 0);
  if (n.version() < 6) {
    const std::string text = n.Text("to", "");
    const std::optional<int> type = TypeOfText(text);
    if (!type) return n.Invalid("unknown type '{}'", text);
    return CastTo(n, *type);
  }
  const int64_t to = n.Int("to", 0);
  if (!n.failed()) CastTo(n, static_cast<int>(std::clamp<int64_t>(to, -1, 1000)));
}

void CastLike(NodeContext& n) {
  n.RequireRank(0, 0);
  n.RequireRank(1, 0);
  if (n.failed()) return;
  n.SetOutput(Converted(n, n.input(0), n.input(1).element()));
}

void Identity(NodeContext& n) { n.SetOutput(n.input(0)); }

// For inference the result is x itself: nothing is dropped.
void Dropout(NodeContext& n) {
  n.RequireRank(0, 0);
  if (n.failed()) return;
  const bool may_train = n.version() >= 12 && n.has_input(2);
  if (may_train && n.KnownInt(2, "training_mode") != 0) {
    const double ratio = n.has_input(1) ? n.KnownFloat(1, "ratio") : 0.5;
    if (ratio != 0) return n.Unsupported("it drops elements at random: export for inference");
  }
  if (n.version() < 7 && n.Int("is_test", 0) == 0 && n.Float("ratio", 0.5) != 0)
    return n.Unsupported("it drops elements at random: export for inference");
  const Tensor& x = n.input(0);
  n.SetOutput(x);
  if (!n.wants_output(1)) return;
  const ir::Type type = n.version() >= 10 ? ir::kBool : x.element();
  n.SetOutput(1, n.BroadcastTo(n.Scalar(type, 1), x.shape()));
}

std::vector<Rule> Activations() {
  std::vector<Rule> rules = {
      WithParameters("LeakyRelu", "leaky_relu", {{"alpha", "alpha", 0.01}}),
      WithParameters("Elu", "elu", {{"alpha", "alpha", 1}}),
      WithParameters("Celu", "celu", {{"alpha", "alpha", 1}}),
      WithParameters(
          "Selu", "selu",
          {{"alpha", "alpha", 1.6732631921768188}, {"gamma", "gamma", 1.0507010221481323}}),
      WithParameters("HardSigmoid", "hard_sigmoid",
                     {{"alpha", "alpha", 0.2}, {"beta", "beta", 0.5}}),
      WithParameters("ThresholdedRelu", "thresholded_relu", {{"alpha", "alpha", 1}}),
      WithParameters("Shrink", "shrink", {{"lambd", "lambda", 0.5}, {"bias", "bias", 0}}),
      OfNumber("Relu", "relu"),
      {"PRelu", PRelu},
      {"Gelu", Gelu},
      {"Swish", Swish},
      {"SwiGLU", SwiGlu},
      {"Clip", Clip},
      {"Dropout", Dropout},
  };
  for (const auto& [op, name] : std::initializer_list<std::pair<const char*, const char*>>{
           {"HardSwish", "hard_swish"},
           {"Mish", "mish"},
           {"Sigmoid", "sigmoid"},
           {"Softplus", "softplus"},
           {"Softsign", "softsign"},
           {"Tanh", "tanh"},
       })
    rules.push_back(OfFloat(op, name));
  return rules;
}

std::vector<Rule> Functions() {
  std::vector<Rule> rules = {
      OfNumber("Abs", "abs"),
      OfNumber("Neg", "negative"),
      OfNumber("Sign", "sign"),
      OfNumber("Not", "logical_not"),
      {"BitwiseNot", BitwiseNot},
      {"BitShift", BitShift},
      {"BitCast", BitCast},
      {"IsInf", IsInf},
      {"Cast", Cast},
      {"CastLike", CastLike},
      {"Identity", Identity},
  };
  for (const auto& [op, name] : std::initializer_list<std::pair<const char*, const char*>>{
           {"Acos", "acos"},    {"Acosh", "acosh"}, {"Asin", "asin"},
           {"Asinh", "asinh"},  {"Atan", "atan"},   {"Atanh", "atanh"},
           {"Ceil", "ceil"},    {"Cos", "cos"},     {"Cosh", "cosh"},
           {"Erf", "erf"},      {"Exp", "exp"},     {"Floor", "floor"},
           {"IsNaN", "is_nan"}, {"Log", "log"},     {"Reciprocal", "reciprocal"},
           {"Round", "round"},  {"Sin", "sin"},     {"Sinh", "sinh"},
           {"Sqrt", "sqrt"},    {"Tan", "tan"},
       })
    rules.push_back(OfFloat(op, name));
  return rules;
}

std::vector<Rule> Operators() {
  std::vector<Rule> rules = {
      {"Pow", Pow},
      {"Mod", Mod},
      {"Where", Where},
      {"Mean", Mean},
      Variadic("Max", "maximum"),
      Variadic("Min", "minimum"),
      Variadic("Sum", "add"),
  };
  for (const auto& [op, name] : std::initializer_list<std::pair<const char*, const char*>>{
           {"Add", "add"},
           {"Sub", "sub"},
           {"Mul", "mul"},
           {"Div", "div"},
           {"And", "logical_and"},
           {"Or", "logical_or"},
           {"Xor", "logical_xor"},
           {"BitwiseAnd", "bitwise_and"},
           {"BitwiseOr", "bitwise_or"},
           {"BitwiseXor", "bitwise_xor"},
           {"Equal", "equal"},
           {"Less", "less"},
           {"LessOrEqual", "less_equal"},
           {"Greater", "greater"},
           {"GreaterOrEqual", "greater_equal"},
       })
    rules.push_back(Binary(op, name));
  return rules;
}

}  // namespace

std::vector<Rule> ElementwiseRules() {
  std::vector<Rule> all = Activations();
  for (std::vector<Rule> more : {Functions(), Operators()})
    for (Rule& rule : more) all.push_back(std::move(rule));
  return all;
}

}  // namespace kiln::frontend
