#include "compiler/codegen/cuda/value_functions.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "compiler/codegen/cuda/types.h"

namespace kiln::codegen {
namespace {

// The sum is NaN where an operand is, and +0 of zeros of two signs.
constexpr std::string_view kFloatExtremes =
    R"cuda(// NaN where an operand is NaN; -0 is less than +0.
__host__ __device__ __forceinline__ float maximum(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float c;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
#else
  return a > b ? a : b > a ? b : a == b && a != 0 ? a : a + b;
#endif
}
__host__ __device__ __forceinline__ float minimum(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float c;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
#else
  return -maximum(-a, -b);
#endif
}

)cuda";

constexpr std::string_view kDoubleExtremes =
    R"cuda(// NaN where an operand is NaN; -0 is less than +0.
__host__ __device__ __forceinline__ double maximum(double a, double b) {
  return a > b ? a : b > a ? b : a == b && a != 0 ? a : a + b;
}
__host__ __device__ __forceinline__ double minimum(double a, double b) { return -maximum(-a, -b); }

)cuda";

// $T: float or double, $F its suffix. Instructions saturate; of NaN only those from 32 bits to 32
// bits make 0.
constexpr std::string_view kConversions =
    R"cuda(// The whole part; the nearest that there is where it does not fit; 0 of NaN.
__host__ __device__ __forceinline__ int to_int32($T x) {
#if defined(__CUDA_ARCH__)
  return $NAN0__$T2int_rz(x);
#else
  if (x >= 2147483648.0$F) return 2147483647;
  if (x < -2147483648.0$F) return -2147483647 - 1;
  return x != x ? 0 : static_cast<int>(x);
#endif
}
__host__ __device__ __forceinline__ unsigned int to_uint32($T x) {
#if defined(__CUDA_ARCH__)
  return $NAN0__$T2uint_rz(x);
#else
  return x >= 4294967296.0$F ? 4294967295u : x >= 0 ? static_cast<unsigned int>(x) : 0u;
#endif
}
__host__ __device__ __forceinline__ long long to_int64($T x) {
#if defined(__CUDA_ARCH__)
  return x != x ? 0 : __$T2ll_rz(x);
#else
  if (x >= 9223372036854775808.0$F) return 9223372036854775807LL;
  if (x < -9223372036854775808.0$F) return -9223372036854775807LL - 1;
  return x != x ? 0 : static_cast<long long>(x);
#endif
}
__host__ __device__ __forceinline__ unsigned long long to_uint64($T x) {
#if defined(__CUDA_ARCH__)
  return x != x ? 0 : __$T2ull_rz(x);
#else
  if (x >= 18446744073709551616.0$F) return 18446744073709551615ull;
  return x >= 0 ? static_cast<unsigned long long>(x) : 0ull;
#endif
}

)cuda";

}  // namespace

std::string ExtremesDefinition(bool of_double) {
  return std::string(of_double ? kDoubleExtremes : kFloatExtremes);
}

std::string ConversionDefinitions(bool of_double) {
  return absl::StrReplaceAll(
      {kConversions.data(), kConversions.size()},
      std::vector<std::pair<std::string, std::string>>{{"$NAN0", of_double ? "x != x ? 0 : " : ""},
                                                       {"$T", of_double ? "double" : "float"},
                                                       {"$F", of_double ? "" : "f"}});
}

std::string ConvertedToInt(ir::Type to, std::string_view value) {
  KILN_CHECK(to.is_int(), "{} is no int", ir::TypeName(to));
  if (to.bits >= 32) return fmt::format("to_{}({})", ir::TypeName(to), value);
  const int least = to.is_unsigned() ? 0 : -(1 << (to.bits - 1)),
            largest = (1 << (to.is_unsigned() ? to.bits : to.bits - 1)) - 1;
  return fmt::format("static_cast<{}>(max({}, min({}, to_int32({}))))", CudaTypeName(to), least,
                     largest, value);
}

}  // namespace kiln::codegen
