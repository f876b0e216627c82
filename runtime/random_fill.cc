#include "runtime/random_fill.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/numbers/float16.h"
#include "base/numbers/float8.h"
#include "base/numbers/rng.h"

namespace kiln::runtime {
namespace {

template <typename T, typename Convert>
void Fill(std::span<std::byte> bytes, uint64_t seed, const Convert& convert) {
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    const double unit = static_cast<double>(SplitSeed(seed, i) >> 11) * 0x1.0p-52 - 1;
    const T value = convert(unit);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

}  // namespace

void FillRandomly(std::span<std::byte> bytes, DType dtype, uint64_t seed) {
  switch (dtype) {
    case DType::kFloat64:
      return Fill<double>(bytes, seed, [](double v) { return v; });
    case DType::kFloat32:
      return Fill<float>(bytes, seed, [](double v) { return static_cast<float>(v); });
    case DType::kFloat16:
      return Fill<uint16_t>(bytes, seed,
                            [](double v) { return FloatToHalf(static_cast<float>(v)); });
    case DType::kBFloat16:
      return Fill<uint16_t>(bytes, seed,
                            [](double v) { return FloatToBFloat16(static_cast<float>(v)); });
    case DType::kFloat8E4M3:
      return Fill<uint8_t>(bytes, seed,
                           [](double v) { return FloatToFloat8(static_cast<float>(v), kE4M3); });
    case DType::kFloat8E5M2:
      return Fill<uint8_t>(bytes, seed,
                           [](double v) { return FloatToFloat8(static_cast<float>(v), kE5M2); });
    default:
      std::fill(bytes.begin(), bytes.end(), std::byte{0});
  }
}

}  // namespace kiln::runtime
