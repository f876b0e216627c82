#include "compiler/ir/type.h"

#include <array>
#include <utility>

namespace kiln::ir {
namespace {
constexpr std::array<std::pair<std::string_view, Type>, 8> kTypes = {{
    {"float32", kFloat32},
    {"float16", kFloat16},
    {"bfloat16", kBFloat16},
    {"float64", kFloat64},
    {"int8", kInt8},
    {"int32", kInt32},
    {"int64", kInt64},
    {"bool", kBool},
}};
}  // namespace

std::string_view TypeName(Type type) {
  for (const auto& [name, candidate] : kTypes) {
    if (candidate == type) return name;
  }
  KILN_CHECK(false, "type code {} bits {}", static_cast<int>(type.code), type.bits);
  return {};
}

StatusOr<Type> ParseType(std::string_view name) {
  for (const auto& [candidate, type] : kTypes) {
    if (candidate == name) return type;
  }
  return InvalidArgument(
      "unknown type '{}', expected one of float32, float16, bfloat16, float64, int8, int32, int64, "
      "bool",
      name);
}

}  // namespace kiln::ir
