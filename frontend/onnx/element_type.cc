#include "frontend/onnx/element_type.h"

#include <cstdint>
#include <optional>

namespace kiln::frontend {
namespace {

struct OnnxType {
  std::string_view name;
  std::optional<ir::Type> type = std::nullopt;     // none: not one of Kiln's
  std::optional<ir::Type> held_in = std::nullopt;  // a wider one that has all its values
  int64_t least = 0, most = 0;
};

// By the number in the file. Those past bfloat16 are newer than Debian's onnx.proto.
constexpr OnnxType kTypes[] = {
    {"undefined"},
    {"float32", ir::kFloat32},
    {"uint8", std::nullopt, ir::kInt32, 0, UINT8_MAX},
    {"int8", ir::kInt8},
    {"uint16", std::nullopt, ir::kInt32, 0, UINT16_MAX},
    {"int16", std::nullopt, ir::kInt32, INT16_MIN, INT16_MAX},
    {"int32", ir::kInt32},
    {"int64", ir::kInt64},
    {"string"},
    {"bool", ir::kBool},
    {"float16", ir::kFloat16},
    {"float64", ir::kFloat64},
    {"uint32", std::nullopt, ir::kInt64, 0, UINT32_MAX},
    {"uint64"},
    {"complex64"},
    {"complex128"},
    {"bfloat16", ir::kBFloat16},
    {"float8_e4m3fn", ir::kFloat8E4M3},
    {"float8e4m3fnuz"},
    {"float8_e5m2", ir::kFloat8E5M2},
    {"float8e5m2fnuz"},
    {"uint4"},
    {"int4"},
    {"float4e2m1"},
};

const OnnxType* Find(int onnx_type) {
  const bool known = onnx_type >= 0 && onnx_type < static_cast<int>(std::size(kTypes));
  return known ? &kTypes[onnx_type] : nullptr;
}

}  // namespace

std::string ElementTypeName(int onnx_type) {
  const OnnxType* found = Find(onnx_type);
  return found == nullptr ? fmt::format("type {}", onnx_type) : std::string(found->name);
}

StatusOr<ir::Type> ElementType(int onnx_type) {
  const OnnxType* found = Find(onnx_type);
  if (found != nullptr && found->type) return *found->type;
  return Unimplemented(
      "elements of {}; Kiln has bool, int8, int32, int64, float8_e4m3fn, float8_e5m2, float16, "
      "bfloat16, float32 and float64",
      ElementTypeName(onnx_type));
}

StatusOr<HeldType> HeldElementType(int onnx_type) {
  const OnnxType* found = Find(onnx_type);
  if (found != nullptr && found->held_in)
    return HeldType{*found->held_in, {onnx_type, found->least, found->most}};
  KILN_ASSIGN_OR_RETURN(const ir::Type type, ElementType(onnx_type));
  return HeldType{type};
}

}  // namespace kiln::frontend
