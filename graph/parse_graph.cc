#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "compiler/dag/dag.h"
#include "compiler/dag/limits.h"
#include "compiler/ir/lexer.h"
#include "graph/text.h"

namespace kiln::graph {
namespace {

using ir::Token;
using ir::TokenKind;
using ir::TokenStream;

Status At(const Token& token, const Status& status) {
  return TokenStream::ErrorAt(token, std::string(status.message()));
}

class Parser {
 public:
  Parser(TokenStream tokens, const ConstantsByDigest& constants)
      : tokens_(std::move(tokens)), constants_(constants) {}

  StatusOr<Graph> Parse() {
    while (!tokens_.AtEnd()) KILN_RETURN_IF_ERROR(Statement());
    StatusOr<Graph> graph = builder_.Build();
    if (!graph.ok()) return At(tokens_.Peek(), graph.status());
    return graph;
  }

 private:
  struct Defined {
    Token token;
    std::string name = {};
    bool has_type = false;
    TensorType type = {};
  };

  Status Statement() {
    const Token& first = tokens_.Peek();
    if (first.is_word("input")) return Input();
    if (first.is_word("const")) return Const();
    if (first.is_word("output")) return Output();
    if (first.kind != TokenKind::kName)
      return tokens_.Expected("'input', 'const', 'output' or the name of a value");
    return Node();
  }

  Status Define(const Defined& defined, ValueId id) {
    if (!values_.emplace(defined.name, id).second) {
      return TokenStream::ErrorAt(defined.token,
                                  fmt::format("there is a value '{}' already", defined.name));
    }
    return OkStatus();
  }

  // Parses NAME [: TYPE].
  StatusOr<Defined> Definition(bool needs_type) {
    Defined defined{.token = tokens_.Peek()};
    KILN_ASSIGN_OR_RETURN(defined.name, tokens_.ExpectName("the name of a value"));
    if (!needs_type && !tokens_.Peek().is_symbol(":")) return defined;
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(":", "and the type of the value"));
    KILN_ASSIGN_OR_RETURN(defined.type, Type());
    defined.has_type = true;
    return defined;
  }

  // Parses a type such as float32[1, 64].
  StatusOr<TensorType> Type() {
    const Token token = tokens_.Peek();
    KILN_ASSIGN_OR_RETURN(const std::string name, tokens_.ExpectName("a type"));
    TensorType type;
    StatusOr<ir::Type> element = ir::ParseType(name);
    if (!element.ok()) return At(token, element.status());
    type.type = *element;
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("[", "and the extents"));
    while (!tokens_.TakeSymbol("]")) {
      if (!type.shape.empty()) KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(",", "or ']'"));
      KILN_ASSIGN_OR_RETURN(const int64_t extent,
                            tokens_.ExpectInt("an extent", 0, dag::kMaxElements));
      type.shape.push_back(extent);
    }
    TensorType with_elements = type;
    std::ranges::replace(with_elements.shape, 0, 1);
    if (Status status = CheckTensorType(with_elements); !status.ok()) return At(token, status);
    return type;
  }

  Status Input() {
    tokens_.Next();
    KILN_ASSIGN_OR_RETURN(const Defined defined, Definition(/*needs_type=*/true));
    StatusOr<ValueId> id = builder_.Input(defined.name, defined.type);
    if (!id.ok()) return At(defined.token, id.status());
    return Define(defined, *id);
  }

  Status Const() {
    tokens_.Next();
    KILN_ASSIGN_OR_RETURN(const Defined defined, Definition(/*needs_type=*/true));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("=", "and the elements"));
    KILN_ASSIGN_OR_RETURN(ConstantPtr constant, Elements(defined));
    return Define(defined, builder_.Add(defined.name, std::move(constant)));
  }

  StatusOr<ConstantPtr> Elements(const Defined& defined) {
    const TensorType& type = defined.type;
    const Token token = tokens_.Peek();
    if (tokens_.TakeWord("random")) {
      RandomElements random;
      KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("("));
      const Token seed = tokens_.Next();
      KILN_ASSIGN_OR_RETURN(random.seed, ir::IntTokenValue(seed));
      KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(",", "and the least value"));
      KILN_ASSIGN_OR_RETURN(random.low, Number());
      KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(",", "and the end of the range"));
      KILN_ASSIGN_OR_RETURN(random.high, Number());
      if (!(std::isfinite(random.low) && std::isfinite(random.high) && random.low <= random.high))
        return TokenStream::ErrorAt(token, "expected a range of finite numbers, the lower first");
      KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(")"));
      return Constant::Random(type, random);
    }
    if (tokens_.TakeWord("data")) {
      KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("("));
      KILN_ASSIGN_OR_RETURN(const std::string digest, tokens_.ExpectName("a digest"));
      KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(")"));
      const auto it = constants_.find(digest);
      if (it == constants_.end()) {
        return TokenStream::ErrorAt(
            token, fmt::format("the elements {} of {} are not given beside the text", digest,
                               defined.name));
      }
      if (it->second->type() != type) {
        return TokenStream::ErrorAt(
            token, fmt::format("the elements {} are {}", digest, TypeText(it->second->type())));
      }
      return it->second;
    }
    return List(type);
  }

  StatusOr<ConstantPtr> List(const TensorType& type) {
    const Token token = tokens_.Peek();
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("[", "or random(...) or data(...)"));
    if (type.num_elements() > (int64_t{1} << 24)) {
      return TokenStream::ErrorAt(
          token, fmt::format("{} elements do not stand in a text", type.num_elements()));
    }
    ir::NDArray array(type.type, type.shape);
    int64_t count = 0;
    while (!tokens_.TakeSymbol("]")) {
      if (count > 0) KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(",", "or ']'"));
      if (count == array.num_elements()) return tokens_.Expected("']': there are enough elements");
      KILN_RETURN_IF_ERROR(Element(array, count++));
    }
    if (count != array.num_elements()) {
      return TokenStream::ErrorAt(
          token, fmt::format("got {} elements of {}", count, array.num_elements()));
    }
    return Constant::FromArray(std::move(array));
  }

  Status Element(ir::NDArray& array, int64_t i) {
    if (array.type().is_float()) {
      KILN_ASSIGN_OR_RETURN(const double value, Number());
      array.SetDouble(i, value);
      return OkStatus();
    }
    if (array.type().is_bool()) {
      const bool value = tokens_.TakeWord("true");
      if (!value && !tokens_.TakeWord("false")) return tokens_.Expected("true or false");
      array.Set(i, ir::Value::Int(value));
      return OkStatus();
    }
    if (array.type() == ir::kUInt64) {
      if (tokens_.Peek().kind != TokenKind::kInt) return tokens_.Expected("an element from 0");
      KILN_ASSIGN_OR_RETURN(const uint64_t value, ir::IntTokenValue(tokens_.Next()));
      array.Set(i, ir::Value::Int(static_cast<int64_t>(value)));
      return OkStatus();
    }
    const bool is_unsigned = array.type().is_unsigned();
    const int value_bits = is_unsigned ? array.type().bits : array.type().bits - 1;
    const auto high = static_cast<int64_t>((uint64_t{1} << value_bits) - 1);
    const int64_t low = is_unsigned ? 0 : -high - 1;
    KILN_ASSIGN_OR_RETURN(const int64_t value, tokens_.ExpectInt("an element", low, high));
    array.Set(i, ir::Value::Int(value));
    return OkStatus();
  }

  // Parses a number, perhaps with a minus; inf and nan too.
  StatusOr<double> Number() {
    const double sign = tokens_.TakeSymbol("-") ? -1 : 1;
    if (tokens_.TakeWord("inf")) return sign * std::numeric_limits<double>::infinity();
    if (tokens_.TakeWord("nan")) return std::numeric_limits<double>::quiet_NaN();
    if (tokens_.Peek().kind != TokenKind::kInt && tokens_.Peek().kind != TokenKind::kFloat)
      return tokens_.Expected("a number");
    const Token number = tokens_.Next();
    KILN_ASSIGN_OR_RETURN(const double value, ir::FloatTokenValue(number));
    return sign * value;
  }

  Status Output() {
    tokens_.Next();
    do {
      KILN_ASSIGN_OR_RETURN(const ValueId id, Use());
      builder_.Output(id);
    } while (tokens_.TakeSymbol(","));
    return OkStatus();
  }

  StatusOr<ValueId> Use() {
    const Token token = tokens_.Peek();
    KILN_ASSIGN_OR_RETURN(const std::string name, tokens_.ExpectName("the name of a value"));
    const auto it = values_.find(name);
    if (it != values_.end()) return it->second;
    return TokenStream::ErrorAt(token, fmt::format("there is no value '{}' before this", name));
  }

  Status Node() {
    std::vector<Defined> outputs;
    do {
      KILN_ASSIGN_OR_RETURN(Defined defined, Definition(/*needs_type=*/false));
      outputs.push_back(std::move(defined));
    } while (tokens_.TakeSymbol(","));
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("=", "and an operator"));
    const Token at = tokens_.Peek();
    KILN_ASSIGN_OR_RETURN(const std::string op, tokens_.ExpectName("the name of an operator"));
    StatusOr<const OpDef*> def = FindOp(op);
    if (!def.ok()) return At(at, def.status());
    KILN_ASSIGN_OR_RETURN(std::vector<ValueId> inputs, Inputs());
    KILN_ASSIGN_OR_RETURN(Attributes attributes, AttributeList(**def));
    GraphBuilder::NodeLabels labels;
    for (const Defined& output : outputs) labels.names.push_back(output.name);
    auto made = builder_.Add(op, std::move(inputs), std::move(attributes), std::move(labels));
    if (!made.ok()) return At(at, made.status());
    return DefineOutputs(at, op, outputs, *made);
  }

  Status DefineOutputs(const Token& at, std::string_view op, const std::vector<Defined>& outputs,
                       const std::vector<ValueId>& made) {
    if (made.size() != outputs.size()) {
      return TokenStream::ErrorAt(at,
                                  fmt::format("{} makes {} value{}, {} are named", op, made.size(),
                                              made.size() == 1 ? "" : "s", outputs.size()));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const TensorType& type = builder_.type(made[i]);
      if (outputs[i].has_type && outputs[i].type != type) {
        return TokenStream::ErrorAt(outputs[i].token,
                                    fmt::format("{} is {}, not {}", outputs[i].name, TypeText(type),
                                                TypeText(outputs[i].type)));
      }
      KILN_RETURN_IF_ERROR(Define(outputs[i], made[i]));
    }
    return OkStatus();
  }

  StatusOr<std::vector<ValueId>> Inputs() {
    std::vector<ValueId> inputs;
    KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("(", "and the inputs"));
    while (!tokens_.TakeSymbol(")")) {
      if (!inputs.empty()) KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(",", "or ')'"));
      if (tokens_.TakeWord("_")) {
        inputs.push_back(kAbsent);
        continue;
      }
      KILN_ASSIGN_OR_RETURN(const ValueId id, Use());
      inputs.push_back(id);
    }
    return inputs;
  }

  StatusOr<Attributes> AttributeList(const OpDef& op) {
    Attributes attributes;
    if (!tokens_.TakeSymbol("{")) return attributes;
    while (!tokens_.TakeSymbol("}")) {
      if (!attributes.empty()) KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(",", "or '}'"));
      const Token token = tokens_.Peek();
      KILN_ASSIGN_OR_RETURN(std::string name, tokens_.ExpectName("the name of an attribute"));
      KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(":", "and the value of the attribute"));
      const AttributeSpec* spec = nullptr;
      for (const AttributeSpec& candidate : op.attributes) {
        if (candidate.name == name) spec = &candidate;
      }
      if (spec == nullptr) return At(token, CompleteAttributes(op, {{name, int64_t{0}}}).status());
      KILN_ASSIGN_OR_RETURN(Attribute value, AttributeValue(spec->kind));
      if (!attributes.emplace(name, std::move(value)).second)
        return TokenStream::ErrorAt(token, fmt::format("{} is given twice", name));
    }
    return attributes;
  }

  StatusOr<Attribute> AttributeValue(AttributeKind kind) {
    const auto whole = [this] { return tokens_.ExpectInt("a whole number", INT64_MIN, INT64_MAX); };
    switch (kind) {
      case AttributeKind::kInt: {
        KILN_ASSIGN_OR_RETURN(const int64_t value, whole());
        return value;
      }
      case AttributeKind::kFloat: {
        KILN_ASSIGN_OR_RETURN(const double value, Number());
        return value;
      }
      case AttributeKind::kName: {
        KILN_ASSIGN_OR_RETURN(std::string value, tokens_.ExpectName("a name"));
        return value;
      }
      case AttributeKind::kInts: {
        std::vector<int64_t> values;
        KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("["));
        while (!tokens_.TakeSymbol("]")) {
          if (!values.empty()) KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(",", "or ']'"));
          KILN_ASSIGN_OR_RETURN(const int64_t value, whole());
          values.push_back(value);
        }
        return values;
      }
      case AttributeKind::kFloats: {
        std::vector<double> values;
        KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol("["));
        while (!tokens_.TakeSymbol("]")) {
          if (!values.empty()) KILN_RETURN_IF_ERROR(tokens_.ExpectSymbol(",", "or ']'"));
          KILN_ASSIGN_OR_RETURN(const double value, Number());
          values.push_back(value);
        }
        return values;
      }
    }
    return tokens_.Expected("the value of an attribute");
  }

  TokenStream tokens_;
  const ConstantsByDigest& constants_;
  GraphBuilder builder_;
  std::unordered_map<std::string, ValueId> values_;
};

}  // namespace

StatusOr<Graph> ParseGraph(std::string_view text, const ConstantsByDigest& constants) {
  if (text.size() > dag::kMaxTextBytes) {
    return ResourceExhausted("the text has {} bytes, at most {} are read", text.size(),
                             dag::kMaxTextBytes);
  }
  KILN_ASSIGN_OR_RETURN(TokenStream tokens, TokenStream::Tokenize(text));
  return Parser(std::move(tokens), constants).Parse();
}

}  // namespace kiln::graph
