#include "base/numbers/float16.h"

namespace kiln {
namespace {

// Returns `bits` without its `drop` low bits, rounded to nearest even.
uint32_t RoundShift(uint32_t bits, int drop) {
  const uint32_t half = (1u << (drop - 1)) - 1;
  return (bits + half + ((bits >> drop) & 1)) >> drop;
}

}  // namespace

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  // NaN.
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  // Numbers from 65536 on become infinity.
  if (magnitude >= 0x47800000) return sign | 0x7c00;
  // Numbers below 2^-25 become zero.
  if (magnitude < 0x33000000) return sign;
  // Normal halves.
  if (magnitude >= 0x38800000) {
    return static_cast<uint16_t>(sign | RoundShift(magnitude - 0x38000000, 13));
  }
  // A subnormal half: the mantissa, with its leading one made explicit, in units of 2^-24.
  const int exponent = static_cast<int>(magnitude >> 23);
  const uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
  return static_cast<uint16_t>(sign | RoundShift(mantissa, 126 - exponent));
}

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) {
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  }
  if (magnitude >= 0x400) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000));
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return sign != 0 ? -value : value;
}

uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  // NaN.
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>(RoundShift(bits, 16));
}

}  // namespace kiln
