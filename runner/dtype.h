// Element types of arguments.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace kiln::runner {

enum class DType {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUInt8,
  kBool,
};

// Refuses names that are not in the table ("float31"), naming those that are.
StatusOr<DType> ParseDType(std::string_view name);
std::string_view DTypeName(DType dtype);
int64_t DTypeBytes(DType dtype);
bool IsFloat(DType dtype);

// Values in [low, high); of integers both are whole.
struct ValueRange {
  double low = 0;
  double high = 0;
};

}  // namespace kiln::runner
