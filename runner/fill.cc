#include "runner/fill.h"

#include <xxhash.h>

#include <cstring>

namespace kiln::runner {
namespace {

// splitmix64: a good hash of a counter, one multiply-xor chain per element.
uint64_t Mix(uint64_t key, uint64_t index) {
  uint64_t z = key + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// 24 random bits: exact in a float.
float UnitFloat(uint64_t random) { return static_cast<float>(random >> 40) * 0x1p-23f - 1.0f; }
double UnitDouble(uint64_t random) { return static_cast<double>(random >> 11) * 0x1p-52 - 1.0; }

int64_t Integer(uint64_t random, int64_t index_limit, int64_t low) {
  if (index_limit > 0) {
    return static_cast<int64_t>((static_cast<unsigned __int128>(random) * index_limit) >> 64);
  }
  return static_cast<int64_t>(random >> 60) + low;
}

template <typename T, typename Make>
void FillWith(std::span<std::byte> bytes, uint64_t key, Make make) {
  const size_t count = bytes.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    const T value = make(Mix(key, i));
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

template <typename T>
void FillIntegers(std::span<std::byte> bytes, uint64_t key, int64_t index_limit, int64_t low) {
  FillWith<T>(bytes, key,
              [=](uint64_t random) { return static_cast<T>(Integer(random, index_limit, low)); });
}

}  // namespace

void FillRandom(std::span<std::byte> bytes, DType dtype, int64_t index_limit,
                std::string_view key_text) {
  const uint64_t key = XXH64(key_text.data(), key_text.size(), 0);
  switch (dtype) {
    case DType::kFloat64:
      return FillWith<double>(bytes, key, UnitDouble);
    case DType::kFloat32:
      return FillWith<float>(bytes, key, UnitFloat);
    case DType::kFloat16:
      return FillWith<uint16_t>(bytes, key, [](uint64_t r) { return FloatToHalf(UnitFloat(r)); });
    case DType::kBFloat16:
      return FillWith<uint16_t>(bytes, key,
                                [](uint64_t r) { return FloatToBFloat16(UnitFloat(r)); });
    case DType::kInt64:
      return FillIntegers<int64_t>(bytes, key, index_limit, -8);
    case DType::kInt32:
      return FillIntegers<int32_t>(bytes, key, index_limit, -8);
    case DType::kInt16:
      return FillIntegers<int16_t>(bytes, key, index_limit, -8);
    case DType::kInt8:
      return FillIntegers<int8_t>(bytes, key, index_limit, -8);
    case DType::kUInt8:
      return FillIntegers<uint8_t>(bytes, key, index_limit, 0);
    case DType::kBool:
      return FillIntegers<uint8_t>(bytes, key, 2, 0);
  }
}

uint8_t PoisonByte(DType dtype, Poison poison) {
  // 0x5a5a: 203 in float16, 1.5e16 in float32.
  if (poison == Poison::kStale) return 0x5a;
  return IsFloat(dtype) ? 0xff : 0xa5;
}

void FillPoison(std::span<std::byte> bytes, DType dtype, Poison poison) {
  std::memset(bytes.data(), PoisonByte(dtype, poison), bytes.size());
}

}  // namespace kiln::runner
