#include "compiler/ir/type.h"

#include <array>
#include <utility>

namespace kiln::ir {
namespace {
constexpr std::array<std::pair<std::string_view, Type>, 15> kTypes = {{
    {"float32", kFloat32},
    {"float16", kFloat16},
    {"bfloat16", kBFloat16},
    {"float8_e4m3fn", kFloat8E4M3},
    {"float8_e5m2", kFloat8E5M2},
    {"float64", kFloat64},
    {"int8", kInt8},
    {"int32", kInt32},
    {"int64", kInt64},
    {"bool", kBool},
    {"int16", kInt16},
    {"uint8", kUInt8},
    {"uint16", kUInt16},
    {"uint32", kUInt32},
    {"uint64", kUInt64},
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
      "unknown type '{}', expected one of float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, "
      "float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool",
      name);
}

}  // namespace kiln::ir
