// Element types of arguments, and the narrow float conversions the host needs to fill and compare
// them.
#pragma once

#include <cstdint>
#include <cstring>
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

// Round to nearest even; infinities and NaN kept.
uint16_t FloatToHalf(float value);
float HalfToFloat(uint16_t bits);
uint16_t FloatToBFloat16(float value);
inline float BFloat16ToFloat(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

}  // namespace kiln::runner
