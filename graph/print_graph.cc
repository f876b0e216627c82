#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "compiler/ir/lexer.h"
#include "graph/text.h"

namespace kiln::graph {
namespace {

// Returns whether the element reads back from its text. The text "nan" does not give the bits of a
// NaN, and a bool may be any byte that is not 0.
bool IsExactInText(const std::byte* element, ir::Type type) {
  ir::Value value = ir::ReadElement(element, type);
  if (type.is_float() && std::isnan(value.f)) value.f = std::numeric_limits<double>::quiet_NaN();
  std::array<std::byte, 8> read;
  ir::WriteElement(read.data(), type, value);
  return std::equal(element, element + type.bytes(), read.begin());
}

bool IsNamedByDigest(const Constant& constant) {
  if (constant.random()) return false;
  const int64_t elements = constant.type().num_elements();
  if (elements > kMaxPrintedElements) return true;
  const ir::Type type = constant.type().type;
  for (int64_t i = 0; i < elements; ++i) {
    if (!IsExactInText(constant.bytes().data() + i * type.bytes(), type)) return true;
  }
  return false;
}

std::string ElementText(const Constant& constant, int64_t i) {
  const ir::Type type = constant.type().type;
  if (type.is_float()) {
    // A float has enough digits if it reads back as the same float.
    const double value = constant.At(i);
    const std::string text = fmt::format("{}", static_cast<float>(value));
    if (type != ir::kFloat64 && static_cast<float>(std::strtod(text.c_str(), nullptr)) == value)
      return FloatText(std::strtod(text.c_str(), nullptr));
    return FloatText(value);
  }
  const ir::Value value = ir::ReadElement(constant.bytes().data() + i * type.bytes(), type);
  if (type.is_bool()) return value.i != 0 ? "true" : "false";
  if (type == ir::kUInt64) return fmt::format("{}", static_cast<uint64_t>(value.i));
  return fmt::format("{}", value.i);
}

std::string ConstantText(const Constant& constant) {
  if (const auto& random = constant.random()) {
    return fmt::format("random({}, {}, {})", random->seed, FloatText(random->low),
                       FloatText(random->high));
  }
  // The digest stands in backquotes, since it may start with a digit.
  if (IsNamedByDigest(constant)) return fmt::format("data(`{}`)", constant.digest());
  std::vector<std::string> elements;
  for (int64_t i = 0; i < constant.type().num_elements(); ++i)
    elements.push_back(ElementText(constant, i));
  return fmt::format("[{}]", fmt::join(elements, ", "));
}

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph) {}

  std::string Print() {
    for (ValueId id : graph_.inputs()) text_ += fmt::format("input {}\n", Typed(id));
    for (size_t i = 0; i < graph_.values().size(); ++i) {
      const Value& value = graph_.values()[i];
      if (value.constant == nullptr) continue;
      text_ += fmt::format("const {} = {}\n", Typed(static_cast<ValueId>(i)),
                           ConstantText(*value.constant));
    }
    for (const Node& node : graph_.nodes()) PrintNode(node);
    std::vector<std::string> outputs;
    for (ValueId id : graph_.outputs()) outputs.push_back(Name(id));
    return text_ + fmt::format("output {}\n", fmt::join(outputs, ", "));
  }

 private:
  std::string Name(ValueId id) const {
    return id == kAbsent ? "_" : StatementName(graph_.value(id).name);
  }
  // Puts a word that starts a statement, and the word for an absent input, into backquotes.
  static std::string StatementName(std::string_view name) {
    if (name == "input" || name == "const" || name == "output" || name == "_")
      return fmt::format("`{}`", name);
    return ir::NameText(name);
  }
  std::string Typed(ValueId id) const {
    return fmt::format("{}: {}", Name(id), TypeText(graph_.value(id).type));
  }

  void PrintNode(const Node& node) {
    std::vector<std::string> outputs, inputs, attributes;
    for (ValueId id : node.outputs) outputs.push_back(Typed(id));
    for (ValueId id : node.inputs) inputs.push_back(Name(id));
    for (const AttributeSpec& spec : node.op->attributes) {
      const auto it = node.attributes.find(spec.name);
      if (it == node.attributes.end() || it->second == spec.default_value) continue;
      attributes.push_back(fmt::format("{}: {}", spec.name, AttributeText(it->second)));
    }
    text_ += fmt::format("{} = {}({})", fmt::join(outputs, ", "), node.op->name,
                         fmt::join(inputs, ", "));
    if (!attributes.empty()) text_ += fmt::format(" {{{}}}", fmt::join(attributes, ", "));
    text_ += '\n';
  }

  const Graph& graph_;
  std::string text_;
};

}  // namespace

std::string PrintGraph(const Graph& graph) { return Printer(graph).Print(); }

ConstantsByDigest NamedConstants(const Graph& graph) {
  ConstantsByDigest constants;
  for (const Value& value : graph.values()) {
    if (value.constant != nullptr && IsNamedByDigest(*value.constant))
      constants[value.constant->digest()] = value.constant;
  }
  return constants;
}

}  // namespace kiln::graph
