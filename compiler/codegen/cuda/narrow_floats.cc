#include "compiler/codegen/cuda/narrow_floats.h"

#include <fmt/format.h>

#include <bit>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "compiler/ir/scalar.h"

namespace kiln::codegen {
namespace {

constexpr std::string_view kWords =
    R"cuda(// A float and its bits.
union float_bits_of {
  float value;
  unsigned bits;
};
// To the nearest float, but of the two around what is none that which is odd: it may be rounded again.
__host__ __device__ __forceinline__ float to_odd(double x) {
  float_bits_of y;
  y.value = static_cast<float>(x);
  const double back = y.value;
  if (back < x || back > x) {
    y.bits -= (x < 0 ? back < x : back > x) ? 1 : 0;
    y.bits |= 1;
  }
  return y.value;
}
)cuda";

constexpr std::string_view kFloat16 =
    R"cuda(// A sign, 5 bits of the exponent, 10 of the mantissa.
struct float16 {
  unsigned short bits;
};
__host__ __device__ __forceinline__ float f16_to_float(float16 x) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return value;
#else
  const unsigned magnitude = x.bits & 0x7fffu;
  float_bits_of y;
  y.bits = (magnitude << 13) + 0x38000000u;
  if (magnitude > 0x7bffu) y.bits = 0x7f800000u | magnitude << 13;
  if (magnitude >> 10 == 0) y.value = static_cast<float>(magnitude) * 5.9604645e-08f;
  y.bits |= (x.bits & 0x8000u) << 16;
  return y.value;
#endif
}
// To the nearest, ties to even; what is too large becomes infinite.
__host__ __device__ __forceinline__ float16 float_to_f16(float x) {
#if defined(__CUDA_ARCH__)
  float16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
#else
  float_bits_of y;
  y.value = x;
  const unsigned sign = y.bits >> 16 & 0x8000u, magnitude = y.bits & 0x7fffffffu;
  unsigned bits = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  if (magnitude < 0x38800000u) {  // its last bit is that of 0.5f
    y.bits = magnitude;
    y.value += 0.5f;
    bits = y.bits - 0x3f000000u;
  }
  if (magnitude >= 0x47800000u) bits = 0x7c00u;
  if (magnitude > 0x7f800000u) bits = 0x7fffu;
  return float16{static_cast<unsigned short>(sign | bits)};
#endif
}
__host__ __device__ __forceinline__ float16 double_to_f16(double x) { return float_to_f16(to_odd(x)); }
)cuda";

constexpr std::string_view kBFloat16 =
    R"cuda(// The upper half of a float.
struct bfloat16 {
  unsigned short bits;
};
__host__ __device__ __forceinline__ float bf16_to_float(bfloat16 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  float value;
  asm("cvt.f32.bf16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return value;
#else
  float_bits_of y;
  y.bits = static_cast<unsigned>(x.bits) << 16;
  return y.value;
#endif
}
// To the nearest, ties to even; what is too large becomes infinite.
__host__ __device__ __forceinline__ bfloat16 float_to_bf16(float x) {
  bfloat16 y;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
  float_bits_of of;
  of.value = x;
  const bool is_nan = (of.bits & 0x7fffffffu) > 0x7f800000u;
  y.bits = static_cast<unsigned short>(is_nan ? 0x7fffu : (of.bits + 0x7fffu + (of.bits >> 16 & 1u)) >> 16);
#endif
  return y;
}
__host__ __device__ __forceinline__ bfloat16 double_to_bf16(double x) { return float_to_bf16(to_odd(x)); }
)cuda";

// Of 8 bits. $T: the type, $N its short name, $E and $M bits of exponent and mantissa, $D those of a float's
// mantissa that have no place. The other constants are those of base/numbers/float8.h.
constexpr std::string_view kFloat8 =
    R"cuda(// A sign, $E bits of the exponent, $M of the mantissa.
struct $T {
  unsigned char bits;
};
__host__ __device__ __forceinline__ float $N_to_float($T x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned halves;
  float value;
  asm("cvt.rn.f16x2.$Nx2 %0, %1;" : "=r"(halves) : "h"(static_cast<unsigned short>(x.bits)));
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<unsigned short>(halves)));
  return value;
#else
  const unsigned magnitude = x.bits & 0x7fu;
  float_bits_of y;
  y.bits = (magnitude << $D) + $REBIAS;
  if (magnitude > $LARGEST) y.bits = 0x7f800000u | magnitude << $D;
  if (magnitude >> $M == 0) y.value = static_cast<float>(magnitude) * $LEASTf;
  y.bits |= (x.bits & 0x80u) << 24;
  return y.value;
#endif
}
// To the nearest, ties to even; what is too large becomes the largest.
__host__ __device__ __forceinline__ $T float_to_$N(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short pair;
  asm("cvt.rn.satfinite.$Nx2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return $T{static_cast<unsigned char>(pair)};
#else
  float_bits_of y;
  y.value = x;
  const unsigned sign = y.bits >> 24 & 0x80u, magnitude = y.bits & 0x7fffffffu;
  unsigned bits = (magnitude - $REBIAS + $HALF + (magnitude >> $D & 1u)) >> $D;
  if (magnitude < $NORMAL) {
    y.bits = magnitude;
    y.value += $ALIGNINGf;
    bits = y.bits - $ALIGNING_BITS;
  }
  if (magnitude >= $MOST) bits = $LARGEST;
  if (magnitude > 0x7f800000u) bits = 0x7fu;
  return $T{static_cast<unsigned char>(sign | bits)};
#endif
}
__host__ __device__ __forceinline__ $T double_to_$N(double x) { return float_to_$N(to_odd(x)); }
)cuda";

std::string Hex(uint32_t bits) { return fmt::format("{:#x}u", bits); }

std::string Float8Definition(ir::Type type) {
  const Float8Format& format = *ir::Float8FormatOf(type);
  const int drop = format.dropped_bits();
  // Longer names first: of two that begin alike the longer one is meant.
  return absl::StrReplaceAll(
      {kFloat8.data(), kFloat8.size()},
      std::vector<std::pair<std::string, std::string>>{
          {"$ALIGNING_BITS", Hex(format.aligning())},
          {"$ALIGNING", fmt::format("{:.1f}", std::bit_cast<float>(format.aligning()))},
          {"$REBIAS", Hex(format.rebias())},
          {"$LARGEST", Hex(format.largest)},
          {"$NORMAL", Hex(format.least_normal())},
          {"$LEAST", fmt::format("{}", format.least())},
          {"$MOST", Hex(format.FloatBits(format.largest))},
          {"$HALF", Hex((1u << (drop - 1)) - 1)},
          {"$T", std::string(ir::TypeName(type))},
          {"$N", std::string(NarrowFloatName(type))},
          {"$E", std::to_string(7 - format.mantissa_bits)},
          {"$M", std::to_string(format.mantissa_bits)},
          {"$D", std::to_string(drop)}});
}

}  // namespace

std::string_view NarrowFloatName(ir::Type type) {
  return type == ir::kFloat16      ? "f16"
         : type == ir::kBFloat16   ? "bf16"
         : type == ir::kFloat8E4M3 ? "e4m3"
         : type == ir::kFloat8E5M2 ? "e5m2"
                                   : "";
}

std::string NarrowFloatDefinitions(bool f16, bool bf16, bool e4m3, bool e5m2) {
  std::string text;
  if (f16) text += kFloat16;
  if (bf16) text += kBFloat16;
  if (e4m3) text += Float8Definition(ir::kFloat8E4M3);
  if (e5m2) text += Float8Definition(ir::kFloat8E5M2);
  return text.empty() ? text : std::string(kWords) + text + "\n";
}

}  // namespace kiln::codegen
