#include "compiler/codegen/cuda/types.h"

#include <fmt/format.h>

#include "compiler/codegen/cuda/narrow_floats.h"

namespace kiln::codegen {
using ir::Type;

std::string CudaTypeName(Type type) {
  if (type.is_bool()) return "bool";
  if (type == ir::kInt8) return "signed char";
  if (type == ir::kInt16) return "short";
  if (type == ir::kUInt8) return "unsigned char";
  if (type == ir::kUInt16) return "unsigned short";
  if (type == ir::kUInt32) return "unsigned int";
  if (type == ir::kInt32) return "int";
  if (type == ir::kInt64) return "long long";
  if (type == ir::kUInt64) return "unsigned long long";
  if (!NarrowFloatName(type).empty()) return std::string(ir::TypeName(type));  // the preamble's
  return type == ir::kFloat64 ? "double" : "float";
}

std::string_view IndexTypeName(int64_t extent) { return extent <= INT32_MAX ? "int" : "long long"; }

bool HasBuiltinVector(Type type) {
  return type == ir::kFloat32 || type == ir::kFloat64 || type == ir::kInt32 ||
         type == ir::kUInt32 || type == ir::kInt64 || type == ir::kUInt64;
}

std::string VectorTypeName(Type type, int lanes, CudaPreamble& preamble) {
  if (HasBuiltinVector(type)) {
    const std::string base = type == ir::kInt64    ? "longlong"
                             : type == ir::kUInt32 ? "uint"
                             : type == ir::kUInt64 ? "ulonglong"
                                                   : CudaTypeName(type);
    return fmt::format("{}{}", base, lanes);
  }
  const std::string_view narrow = NarrowFloatName(type);
  const std::string_view base = !narrow.empty()       ? narrow
                                : type.is_bool()      ? "bool"
                                : type == ir::kInt16  ? "short"
                                : type == ir::kUInt8  ? "uchar"
                                : type == ir::kUInt16 ? "ushort"
                                                      : "char";
  const std::string name = fmt::format("{}_x{}", base, lanes);
  preamble.vector_types[name] = fmt::format("struct __align__({}) {} {{\n  {} lane[{}];\n}};\n",
                                            lanes * type.bytes(), name, CudaTypeName(type), lanes);
  return name;
}

std::string LaneName(Type type, int lane) {
  if (HasBuiltinVector(type)) return std::string(".") + "xyzw"[lane];
  return fmt::format(".lane[{}]", lane);
}

}  // namespace kiln::codegen
