#include "compiler/ir/scalar.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "base/numbers/float16.h"

namespace kiln::ir {
namespace {

int ExponentOf(double value) {
  return static_cast<int>((std::bit_cast<uint64_t>(value) >> 52) & 0x7ff) - 1023;
}

// Rounds to `precision` significant bits, but no finer than steps of 2^min_step. `largest` is the
// largest finite value.
double RoundSignificand(double value, int precision, int min_step, double largest) {
  if (value == 0 || std::isinf(value)) return value;
  if (std::abs(value) >= 2 * largest) return std::copysign(INFINITY, value);
  int step = ExponentOf(value) - (precision - 1);
  if (step < min_step) step = min_step;
  // Adding 1.5 * 2^(step+52) leaves no bits below 2^step; the processor rounds to nearest even.
  const double shifter =
      std::bit_cast<double>(static_cast<uint64_t>(step + 52 + 1023) << 52 | uint64_t{1} << 51);
  const double rounded = (value + shifter) - shifter;
  if (std::abs(rounded) > largest) return std::copysign(INFINITY, value);
  return std::copysign(rounded, value);
}

template <typename T>
T LoadAs(const void* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  return value;
}

template <typename T>
void StoreAs(void* data, T value) {
  std::memcpy(data, &value, sizeof(T));
}

int64_t Saturate(double value, Type type) {
  if (std::isnan(value)) return 0;
  if (type == kUInt64) {
    // All bits are set.
    if (value >= 0x1p64) return -1;
    return value <= 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  const int value_bits = type.is_unsigned() ? type.bits : type.bits - 1;
  const auto highest = static_cast<int64_t>((uint64_t{1} << value_bits) - 1);
  const int64_t lowest = type.is_unsigned() ? 0 : -highest - 1;
  // `highest` + 1 is a power of two, which a double holds exactly.
  if (value >= std::ldexp(1.0, value_bits)) return highest;
  if (value <= static_cast<double>(lowest)) return lowest;
  return static_cast<int64_t>(value);
}

}  // namespace

const Float8Format* Float8FormatOf(Type type) {
  if (type == kFloat8E4M3) return &kE4M3;
  return type == kFloat8E5M2 ? &kE5M2 : nullptr;
}

double LargestFinite(Type type) {
  if (type == kFloat16) return 65504;
  if (type == kBFloat16) return 0x1.fep127;
  if (type == kFloat32) return std::numeric_limits<float>::max();
  if (const Float8Format* format = Float8FormatOf(type))
    return Float8ToFloat(format->largest, *format);
  return std::numeric_limits<double>::max();
}

double RoundToType(double value, Type type) {
  if (std::isnan(value)) return std::numeric_limits<double>::quiet_NaN();
  if (type == kFloat32) return static_cast<float>(value);
  const double largest = LargestFinite(type);
  if (type == kFloat16) return RoundSignificand(value, 11, -24, largest);
  if (type == kBFloat16) return RoundSignificand(value, 8, -133, largest);
  if (const Float8Format* format = Float8FormatOf(type)) {
    return RoundSignificand(std::clamp(value, -largest, largest), format->mantissa_bits + 1,
                            format->least_exponent(), largest);
  }
  return value;
}

int64_t WrapToType(int64_t value, Type type) {
  if (type.is_bool()) return value != 0;
  if (type.bits >= 64) return value;
  const int shift = 64 - type.bits;
  if (type.is_unsigned())
    return static_cast<int64_t>(static_cast<uint64_t>(value) << shift >> shift);
  return static_cast<int64_t>(static_cast<uint64_t>(value) << shift) >> shift;
}

Value CastValue(Value value, Type from, Type to) {
  if (from.is_float()) {
    if (to.is_float()) return Value::Float(RoundToType(value.f, to));
    if (to.is_bool()) return Value::Int(value.f != 0);
    return Value::Int(Saturate(value.f, to));
  }
  if (!to.is_float()) return Value::Int(WrapToType(value.i, to));
  // The int is converted directly, because a conversion by way of double would round twice.
  if (from == kUInt64) {
    const auto bits = static_cast<uint64_t>(value.i);
    if (to == kFloat32) return Value::Float(static_cast<float>(bits));
    return Value::Float(RoundToType(static_cast<double>(bits), to));
  }
  if (to == kFloat32) return Value::Float(static_cast<float>(value.i));
  return Value::Float(RoundToType(static_cast<double>(value.i), to));
}

Value ReinterpretValue(Value value, Type from, Type to) {
  std::array<std::byte, 8> bytes = {};
  WriteElement(bytes.data(), from, value);
  return ReadElement(bytes.data(), to);
}

Value ReadElement(const void* data, Type type) {
  switch (type.code) {
    case TypeCode::kBool:
      return Value::Int(LoadAs<uint8_t>(data) != 0);
    case TypeCode::kInt:
      if (type.bits == 8) return Value::Int(LoadAs<int8_t>(data));
      if (type.bits == 16) return Value::Int(LoadAs<int16_t>(data));
      if (type.bits == 32) return Value::Int(LoadAs<int32_t>(data));
      return Value::Int(LoadAs<int64_t>(data));
    case TypeCode::kUInt:
      if (type.bits == 8) return Value::Int(LoadAs<uint8_t>(data));
      if (type.bits == 16) return Value::Int(LoadAs<uint16_t>(data));
      if (type.bits == 32) return Value::Int(LoadAs<uint32_t>(data));
      return Value::Int(LoadAs<int64_t>(data));
    case TypeCode::kFloat:
      if (type.bits == 32) return Value::Float(LoadAs<float>(data));
      if (type.bits == 64) return Value::Float(LoadAs<double>(data));
      return Value::Float(HalfToFloat(LoadAs<uint16_t>(data)));
    case TypeCode::kBFloat:
      return Value::Float(BFloat16ToFloat(LoadAs<uint16_t>(data)));
    case TypeCode::kFloatE4M3:
    case TypeCode::kFloatE5M2:
      return Value::Float(Float8ToFloat(LoadAs<uint8_t>(data), *Float8FormatOf(type)));
  }
  return Value::Int(0);
}

void WriteElement(void* data, Type type, Value value) {
  switch (type.code) {
    case TypeCode::kBool:
      return StoreAs<uint8_t>(data, value.i != 0);
    case TypeCode::kInt:
    // Both have the same bits.
    case TypeCode::kUInt:
      if (type.bits == 8) return StoreAs(data, static_cast<int8_t>(value.i));
      if (type.bits == 16) return StoreAs(data, static_cast<int16_t>(value.i));
      if (type.bits == 32) return StoreAs(data, static_cast<int32_t>(value.i));
      return StoreAs(data, value.i);
    case TypeCode::kFloat:
      if (type.bits == 32) return StoreAs(data, static_cast<float>(value.f));
      if (type.bits == 64) return StoreAs(data, value.f);
      return StoreAs(data, FloatToHalf(static_cast<float>(RoundToType(value.f, type))));
    case TypeCode::kBFloat:
      return StoreAs(data, FloatToBFloat16(static_cast<float>(RoundToType(value.f, type))));
    case TypeCode::kFloatE4M3:
    case TypeCode::kFloatE5M2:
      return StoreAs(data, FloatToFloat8(static_cast<float>(RoundToType(value.f, type)),
                                         *Float8FormatOf(type)));
  }
}

}  // namespace kiln::ir
