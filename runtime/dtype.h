// Element types of the tensors of networks and of programs' arguments.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace kiln::runtime {

enum class DType {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kFloat8E4M3,
  kFloat8E5M2,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,
};

// Refuses names that are not in the table ("float31"), and lists the names that are.
StatusOr<DType> ParseDType(std::string_view name);
std::string_view DTypeName(DType dtype);
int64_t DTypeBytes(DType dtype);
bool IsFloat(DType dtype);

}  // namespace kiln::runtime
