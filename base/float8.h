// The bits of 8-bit floats, which C++20 has no types for: e4m3fn, without infinities, and e5m2, with
// those of IEEE 754 ("FP8 Formats for Deep Learning", arXiv 2209.05433).
//
//            exponent    bias   largest   smallest normal   smallest   NaN
//   e4m3fn   4 bits      7      448       2^-6              2^-9       0x7f, 0xff
//   e5m2     5 bits      15     57344     2^-14             2^-16      0x7d to 0x7f, 0xfd to 0xff
//
// Conversion is to the nearest, ties to even, and saturates: what lies past the largest becomes the
// largest, infinities too; NaN becomes 0x7f or 0xff. This is cvt.rn.satfinite of NVIDIA's GPUs and
// ONNX's Cast; a cast in PyTorch makes NaN or infinity of what is too large. So an infinity of e5m2
// is read, and never made. Pure functions, any thread.
#pragma once

#include <bit>
#include <cstdint>

namespace kiln {

struct Float8Format {
  int mantissa_bits;
  int bias;         // of the exponent
  uint8_t largest;  // finite one; behind it are infinity and NaN, without it NaN alone

  // The bits of a float's mantissa that have no place.
  int dropped_bits() const { return 23 - mantissa_bits; }
  // To be added to the bits of a normal number that are shifted by so many: of the biases.
  uint32_t rebias() const { return static_cast<uint32_t>(127 - bias) << 23; }
  // The smallest number, 2^least_exponent().
  int least_exponent() const { return 1 - bias - mantissa_bits; }
  float least() const {
    return std::bit_cast<float>(static_cast<uint32_t>(127 + least_exponent()) << 23);
  }
  // A normal number's bits, of no sign, as those of a float.
  uint32_t FloatBits(uint32_t bits) const { return (bits << dropped_bits()) + rebias(); }
  // The bits of the smallest normal number as a float, and the bits of the float whose mantissa ends
  // where that of numbers below it does: its sum with one of them is rounded as they are.
  uint32_t least_normal() const { return static_cast<uint32_t>(128 - bias) << 23; }
  uint32_t aligning() const { return static_cast<uint32_t>(127 + 23 + least_exponent()) << 23; }
};
inline constexpr Float8Format kE4M3 = {.mantissa_bits = 3, .bias = 7, .largest = 0x7e};
inline constexpr Float8Format kE5M2 = {.mantissa_bits = 2, .bias = 15, .largest = 0x7b};

uint8_t FloatToFloat8(float value, const Float8Format& format);
float Float8ToFloat(uint8_t bits, const Float8Format& format);

}  // namespace kiln
