// Attributes of a node: what an operator needs to know beside its inputs. Which there are and of
// which kind says the operator (op.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace kiln::graph {

using Attribute =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;
using Attributes = std::map<std::string, Attribute, std::less<>>;

enum class AttributeKind : uint8_t { kInt, kFloat, kName, kInts, kFloats };
inline AttributeKind KindOf(const Attribute& attribute) {
  return static_cast<AttributeKind>(attribute.index());
}
// "a whole number", "a number", "a name", "a list of whole numbers", "a list of numbers".
std::string_view KindText(AttributeKind kind);

// "3", "0.5", "reflect", "[1, 2]"; a float always has a point, an exponent, or is inf or nan.
// Parsing it (text.h) gives the same value.
std::string AttributeText(const Attribute& attribute);
// A double that reads back as the same: "0.1", "1.0", "-inf", "nan".
std::string FloatText(double value);

}  // namespace kiln::graph
