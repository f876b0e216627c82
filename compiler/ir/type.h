// Scalar types. Vectors do not exist in the IR: a vectorized loop is a loop kind, and code
// generators make the vectors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::ir {

enum class TypeCode : uint8_t { kBool, kInt, kFloat, kBFloat, kUInt, kFloatE4M3, kFloatE5M2 };

struct Type {
  TypeCode code = TypeCode::kFloat;
  uint8_t bits = 32;

  bool operator==(const Type&) const = default;
  // True for signed and unsigned ints.
  bool is_int() const { return code == TypeCode::kInt || code == TypeCode::kUInt; }
  bool is_unsigned() const { return code == TypeCode::kUInt; }
  bool is_bool() const { return code == TypeCode::kBool; }
  bool is_float() const { return !is_bool() && !is_int(); }
  // True for floats of fewer than 32 bits. They are computed with in float32, and rounded at each
  // store or cast.
  bool is_short_float() const { return is_float() && bits < 32; }
  int bytes() const { return (bits + 7) / 8; }
};

inline constexpr Type kBool{TypeCode::kBool, 1};
inline constexpr Type kInt8{TypeCode::kInt, 8};
inline constexpr Type kInt16{TypeCode::kInt, 16};
inline constexpr Type kInt32{TypeCode::kInt, 32};
inline constexpr Type kInt64{TypeCode::kInt, 64};
inline constexpr Type kUInt8{TypeCode::kUInt, 8};
inline constexpr Type kUInt16{TypeCode::kUInt, 16};
inline constexpr Type kUInt32{TypeCode::kUInt, 32};
inline constexpr Type kUInt64{TypeCode::kUInt, 64};
inline constexpr Type kFloat16{TypeCode::kFloat, 16};
inline constexpr Type kBFloat16{TypeCode::kBFloat, 16};
// base/numbers/float8.h defines their numbers.
inline constexpr Type kFloat8E4M3{TypeCode::kFloatE4M3, 8};
inline constexpr Type kFloat8E5M2{TypeCode::kFloatE5M2, 8};
inline constexpr Type kFloat32{TypeCode::kFloat, 32};
inline constexpr Type kFloat64{TypeCode::kFloat, 64};
// Type of loop variables and index arithmetic. Code generators narrow it to 32 bits if every value
// fits.
inline constexpr Type kIndex = kInt64;

// The names are "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float64",
// "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool".
std::string_view TypeName(Type type);
StatusOr<Type> ParseType(std::string_view name);

}  // namespace kiln::ir
