#include "runtime/dtype.h"

#include <string>

namespace kiln::runtime {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  int64_t bytes;
};
constexpr Row kTable[] = {
    {DType::kFloat64, "float64", 8},
    {DType::kFloat32, "float32", 4},
    {DType::kFloat16, "float16", 2},
    {DType::kBFloat16, "bfloat16", 2},
    {DType::kFloat8E4M3, "float8_e4m3fn", 1},
    {DType::kFloat8E5M2, "float8_e5m2", 1},
    {DType::kInt64, "int64", 8},
    {DType::kInt32, "int32", 4},
    {DType::kInt16, "int16", 2},
    {DType::kInt8, "int8", 1},
    {DType::kUInt8, "uint8", 1},
    {DType::kUInt16, "uint16", 2},
    {DType::kUInt32, "uint32", 4},
    {DType::kUInt64, "uint64", 8},
    {DType::kBool, "bool", 1},
};

const Row& RowOf(DType dtype) {
  for (const Row& row : kTable) {
    if (row.dtype == dtype) return row;
  }
  KILN_CHECK(false, "dtype {}", static_cast<int>(dtype));
  return kTable[0];
}

}  // namespace

StatusOr<DType> ParseDType(std::string_view name) {
  std::string known;
  for (const Row& row : kTable) {
    if (row.name == name) return row.dtype;
    known += known.empty() ? "" : ", ";
    known += row.name;
  }
  return InvalidArgument("unknown dtype '{}'; known are {}", name, known);
}

std::string_view DTypeName(DType dtype) { return RowOf(dtype).name; }
int64_t DTypeBytes(DType dtype) { return RowOf(dtype).bytes; }

bool IsFloat(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return true;
    default:
      return false;
  }
}

}  // namespace kiln::runtime
