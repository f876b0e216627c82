#include "base/numbers/float8.h"

namespace kiln {
namespace {
constexpr uint32_t kInfinity = 0x7f800000;
constexpr uint8_t kNan = 0x7f;
}  // namespace

uint8_t FloatToFloat8(float value, const Float8Format& format) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffff;
  const auto sign = static_cast<uint8_t>(bits >> 24 & 0x80);
  if (magnitude > kInfinity) return sign | kNan;
  if (magnitude >= format.FloatBits(format.largest)) return sign | format.largest;
  if (magnitude < format.least_normal()) {
    const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(format.aligning());
    return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(sum) - format.aligning()));
  }
  const int drop = format.dropped_bits();
  const uint32_t half = (1u << (drop - 1)) - 1, odd = magnitude >> drop & 1;
  return static_cast<uint8_t>(sign | (magnitude - format.rebias() + half + odd) >> drop);
}

float Float8ToFloat(uint8_t bits, const Float8Format& format) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24, magnitude = bits & 0x7f;
  uint32_t result = format.FloatBits(magnitude);
  if (magnitude > format.largest) result = kInfinity | magnitude << format.dropped_bits();
  if (magnitude >> format.mantissa_bits == 0) {
    result = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * format.least());
  }
  return std::bit_cast<float>(sign | result);
}

}  // namespace kiln
