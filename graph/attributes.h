// Attributes of a node: values that an operator needs beside its inputs. The operator says which
// attributes there are and of which kind (op.h).
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
// Returns "a whole number", "a number", "a name", "a list of whole numbers" or "a list of numbers".
std::string_view KindText(AttributeKind kind);

// Returns "3", "0.5", "reflect" or "[1, 2]". A float always has a point or an exponent, or is inf
// or nan. Parsing the text (text.h) gives the same value.
std::string AttributeText(const Attribute& attribute);
// Prints a double such that it reads back unchanged: "0.1", "1.0", "-inf", "nan".
std::string FloatText(double value);

}  // namespace kiln::graph
