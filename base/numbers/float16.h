// Conversions of floats to and from the bits of float16 (IEEE 754 binary16) and bfloat16 (the upper
// half of a float), which C++20 has no types for.
//
// Rounding is to the nearest, ties to even. Numbers past the largest become infinity; NaN stays
// NaN. Pure functions, any thread.
#pragma once

#include <bit>
#include <cstdint>

namespace kiln {

uint16_t FloatToHalf(float value);
float HalfToFloat(uint16_t bits);
uint16_t FloatToBFloat16(float value);
inline float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace kiln
