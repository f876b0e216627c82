// Conversions of floats to and from the bits of 8-bit floats, which C++20 has no types for: e4m3fn
// has no infinities, e5m2 has those of IEEE 754 ("FP8 Formats for Deep Learning", arXiv
// 2209.05433).
//
//            exponent    bias   largest   smallest normal   smallest   NaN
//   e4m3fn   4 bits      7      448       2^-6              2^-9       0x7f, 0xff
//   e5m2     5 bits      15     57344     2^-14             2^-16      0x7d to 0x7f, 0xfd to 0xff
//
// Conversion rounds to the nearest, ties to even, and saturates: numbers past the largest,
// infinities too, become the largest; NaN becomes 0x7f or 0xff. NVIDIA's cvt.rn.satfinite and
// ONNX's Cast do the same; a cast in PyTorch makes NaN or infinity of numbers that are too large.
// So infinities of e5m2 are read, and never made. Pure functions, any thread.
#pragma once

#include <bit>
#include <cstdint>

namespace kiln {

struct Float8Format {
  int mantissa_bits;
  // Bias of the exponent.
  int bias;
  // Bits of the largest finite number. The larger bits mean infinity and NaN, or NaN alone if the
  // format has no infinity.
  uint8_t largest;

  // Number of bits of a float's mantissa that this format lacks.
  int dropped_bits() const { return 23 - mantissa_bits; }
  // Difference of the biases, to be added to a normal number's bits that were shifted by
  // dropped_bits().
  uint32_t rebias() const { return static_cast<uint32_t>(127 - bias) << 23; }
  // The smallest number is 2^least_exponent().
  int least_exponent() const { return 1 - bias - mantissa_bits; }
  float least() const {
    return std::bit_cast<float>(static_cast<uint32_t>(127 + least_exponent()) << 23);
  }
  // Converts the bits of a normal number without its sign to those of a float.
  uint32_t FloatBits(uint32_t bits) const { return (bits << dropped_bits()) + rebias(); }
  // Bits of the smallest normal number, as a float.
  uint32_t least_normal() const { return static_cast<uint32_t>(128 - bias) << 23; }
  // Bits of a float whose mantissa ends where the mantissa of subnormal numbers ends. Adding it to
  // a number below the smallest normal one rounds that number as the format does.
  uint32_t aligning() const { return static_cast<uint32_t>(127 + 23 + least_exponent()) << 23; }
};
inline constexpr Float8Format kE4M3 = {.mantissa_bits = 3, .bias = 7, .largest = 0x7e};
inline constexpr Float8Format kE5M2 = {.mantissa_bits = 2, .bias = 15, .largest = 0x7b};

uint8_t FloatToFloat8(float value, const Float8Format& format);
float Float8ToFloat(uint8_t bits, const Float8Format& format);

}  // namespace kiln
