#include "frontend/onnx/element_type.h"

#include <optional>

namespace kiln::frontend {
namespace {

constexpr std::string_view kOutside = "compare, look up and split texts outside of the network";
constexpr std::string_view kUnpack =
    "quantize to int8 or uint8, or dequantize the weights before exporting";
constexpr std::string_view kUseFloat8 =
    "use float8_e4m3fn or float8_e5m2, which ONNX calls FLOAT8E4M3FN and FLOAT8E5M2";
constexpr std::string_view kTwoParts = "keep real and imaginary parts in a last axis of two";

struct OnnxType {
  std::string_view name;
  // None: Kiln lacks the type.
  std::optional<ir::Type> type = std::nullopt;
  // Advice if Kiln lacks the type.
  std::string_view cure = {};
};

// Types by their number in the file. Types after bfloat16 are newer than Debian's onnx.proto.
constexpr OnnxType kTypes[] = {
    {"undefined"},
    {"float32", ir::kFloat32},
    {"uint8", ir::kUInt8},
    {"int8", ir::kInt8},
    {"uint16", ir::kUInt16},
    {"int16", ir::kInt16},
    {"int32", ir::kInt32},
    {"int64", ir::kInt64},
    {"string", std::nullopt, kOutside},
    {"bool", ir::kBool},
    {"float16", ir::kFloat16},
    {"float64", ir::kFloat64},
    {"uint32", ir::kUInt32},
    {"uint64", ir::kUInt64},
    {"complex64", std::nullopt, kTwoParts},
    {"complex128", std::nullopt, kTwoParts},
    {"bfloat16", ir::kBFloat16},
    {"float8_e4m3fn", ir::kFloat8E4M3},
    {"float8e4m3fnuz", std::nullopt, kUseFloat8},
    {"float8_e5m2", ir::kFloat8E5M2},
    {"float8e5m2fnuz", std::nullopt, kUseFloat8},
    {"uint4", std::nullopt, kUnpack},
    {"int4", std::nullopt, kUnpack},
    {"float4e2m1", std::nullopt, kUnpack},
    {"float8e8m0", std::nullopt, "keep scales in float32"},
    {"uint2", std::nullopt, kUnpack},
    {"int2", std::nullopt, kUnpack},
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
  if (found != nullptr && !found->cure.empty()) {
    return Unimplemented("elements of {}, which Kiln lacks: {}", ElementTypeName(onnx_type),
                         found->cure);
  }
  return Unimplemented(
      "elements of {}; Kiln has bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
      "float8_e4m3fn, float8_e5m2, float16, bfloat16, float32 and float64",
      ElementTypeName(onnx_type));
}

}  // namespace kiln::frontend
