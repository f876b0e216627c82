#include "graph/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "compiler/ir/lexer.h"

namespace kiln::graph {

std::string_view KindText(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kInt:
      return "a whole number";
    case AttributeKind::kFloat:
      return "a number";
    case AttributeKind::kName:
      return "a name";
    case AttributeKind::kInts:
      return "a list of whole numbers";
    case AttributeKind::kFloats:
      return "a list of numbers";
  }
  return "";
}

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string AttributeText(const Attribute& attribute) {
  switch (KindOf(attribute)) {
    case AttributeKind::kInt:
      return fmt::format("{}", std::get<int64_t>(attribute));
    case AttributeKind::kFloat:
      return FloatText(std::get<double>(attribute));
    case AttributeKind::kName:
      return ir::NameText(std::get<std::string>(attribute));
    case AttributeKind::kInts:
      return fmt::format("[{}]", fmt::join(std::get<std::vector<int64_t>>(attribute), ", "));
    case AttributeKind::kFloats: {
      std::vector<std::string> texts;
      for (double value : std::get<std::vector<double>>(attribute))
        texts.push_back(FloatText(value));
      return fmt::format("[{}]", fmt::join(texts, ", "));
    }
  }
  return "";
}

}  // namespace kiln::graph
