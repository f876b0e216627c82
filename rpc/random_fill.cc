#include "rpc/random_fill.h"

#include <fmt/ranges.h>
#include <xxhash.h>

#include <cstring>

#include "base/numbers/float16.h"
#include "base/numbers/float8.h"

namespace kiln {
namespace {

using runtime::DType;

// Hashes a counter well (splitmix64), with one multiply-xor chain per element.
uint64_t Mix(uint64_t key, uint64_t index) {
  uint64_t z = key + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Uses 24 random bits, which a float holds exactly.
float UnitFloat(uint64_t random) { return static_cast<float>(random >> 40) * 0x1p-23f - 1.0f; }
double UnitDouble(uint64_t random) { return static_cast<double>(random >> 11) * 0x1p-52 - 1.0; }

int64_t Integer(uint64_t random, int64_t index_limit, int64_t low) {
  if (index_limit > 0) {
    return static_cast<int64_t>((static_cast<unsigned __int128>(random) * index_limit) >> 64);
  }
  return static_cast<int64_t>(random >> 60) + low;
}

// Source of a span's values: the elements of a content from `first` on.
struct Source {
  uint64_t key;
  uint64_t first;
};

template <typename T, typename Make>
void FillWith(std::span<std::byte> bytes, Source from, Make make) {
  const size_t count = bytes.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    const T value = make(Mix(from.key, from.first + i));
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

template <typename T>
void FillIntegers(std::span<std::byte> bytes, Source key, int64_t index_limit, int64_t low) {
  FillWith<T>(bytes, key,
              [=](uint64_t random) { return static_cast<T>(Integer(random, index_limit, low)); });
}

uint8_t ToE4M3(double value) { return FloatToFloat8(static_cast<float>(value), kE4M3); }
uint8_t ToE5M2(double value) { return FloatToFloat8(static_cast<float>(value), kE5M2); }

// `convert` rounds to the type; `back` returns the rounded value as a double.
template <typename T, typename Convert, typename Back>
void FillFloatRange(std::span<std::byte> bytes, Source key, const ValueRange& range,
                    Convert convert, Back back) {
  FillWith<T>(bytes, key, [&](uint64_t random) {
    const double unit = static_cast<double>(random >> 11) * 0x1p-53;
    // The formula avoids high - low, which may be beyond a double.
    const T value = convert(range.low * (1 - unit) + range.high * unit);
    return back(value) < range.high ? value : convert(range.low);
  });
}

template <typename T>
void FillRuns(std::span<std::byte> bytes, uint64_t first, const ValueRange& range) {
  const auto low = static_cast<int64_t>(range.low);
  const uint64_t values = static_cast<uint64_t>(range.high) - static_cast<uint64_t>(low);
  const size_t count = bytes.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t step = (first + i) / static_cast<uint64_t>(range.run) % values;
    const T value = static_cast<T>(low + static_cast<int64_t>(step));
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

template <typename T>
void FillIntegerRange(std::span<std::byte> bytes, Source key, const ValueRange& range) {
  const auto low = static_cast<int64_t>(range.low);
  const auto count = static_cast<int64_t>(range.high) - low;
  if (range.run > 0) return FillRuns<T>(bytes, key.first, range);
  FillWith<T>(bytes, key,
              [=](uint64_t random) { return static_cast<T>(low + Integer(random, count, 0)); });
}

void FillRange(std::span<std::byte> bytes, DType dtype, Source key, const ValueRange& range) {
  const auto to_half = [](double v) { return FloatToHalf(static_cast<float>(v)); };
  const auto to_bfloat16 = [](double v) { return FloatToBFloat16(static_cast<float>(v)); };
  const auto to_float = [](double v) { return static_cast<float>(v); };
  const auto same = [](double v) { return v; };
  switch (dtype) {
    case DType::kFloat64:
      return FillFloatRange<double>(bytes, key, range, same, same);
    case DType::kFloat32:
      return FillFloatRange<float>(bytes, key, range, to_float, same);
    case DType::kFloat16:
      return FillFloatRange<uint16_t>(bytes, key, range, to_half, HalfToFloat);
    case DType::kBFloat16:
      return FillFloatRange<uint16_t>(bytes, key, range, to_bfloat16, BFloat16ToFloat);
    case DType::kFloat8E4M3:
      return FillFloatRange<uint8_t>(bytes, key, range, ToE4M3,
                                     [](uint8_t bits) { return Float8ToFloat(bits, kE4M3); });
    case DType::kFloat8E5M2:
      return FillFloatRange<uint8_t>(bytes, key, range, ToE5M2,
                                     [](uint8_t bits) { return Float8ToFloat(bits, kE5M2); });
    case DType::kInt64:
      return FillIntegerRange<int64_t>(bytes, key, range);
    case DType::kInt32:
      return FillIntegerRange<int32_t>(bytes, key, range);
    case DType::kInt16:
      return FillIntegerRange<int16_t>(bytes, key, range);
    case DType::kInt8:
      return FillIntegerRange<int8_t>(bytes, key, range);
    case DType::kUInt64:
      return FillIntegerRange<uint64_t>(bytes, key, range);
    case DType::kUInt32:
      return FillIntegerRange<uint32_t>(bytes, key, range);
    case DType::kUInt16:
      return FillIntegerRange<uint16_t>(bytes, key, range);
    case DType::kUInt8:
    case DType::kBool:
      return FillIntegerRange<uint8_t>(bytes, key, range);
  }
}

}  // namespace

std::string RandomKey(const RandomInput& input, int ordinal, uint64_t seed) {
  std::string range;
  if (input.range) {
    range = fmt::format("{:a}:{:a}:", input.range->low, input.range->high);
    if (input.range->run > 0) range += fmt::format("runs of {}:", input.range->run);
  }
  return fmt::format("{}:{}:{}[{}]:{}:{}{}", seed, ordinal, runtime::DTypeName(input.dtype),
                     fmt::join(input.shape, ", "), input.index_limit, range, input.name);
}

void FillRandom(std::span<std::byte> bytes, DType dtype, int64_t index_limit,
                std::string_view key_text, const std::optional<ValueRange>& range, int64_t first) {
  const Source key = {XXH64(key_text.data(), key_text.size(), 0), static_cast<uint64_t>(first)};
  if (range) return FillRange(bytes, dtype, key, *range);
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
    case DType::kFloat8E4M3:
      return FillWith<uint8_t>(bytes, key, [](uint64_t r) { return ToE4M3(UnitFloat(r)); });
    case DType::kFloat8E5M2:
      return FillWith<uint8_t>(bytes, key, [](uint64_t r) { return ToE5M2(UnitFloat(r)); });
    case DType::kInt64:
      return FillIntegers<int64_t>(bytes, key, index_limit, -8);
    case DType::kInt32:
      return FillIntegers<int32_t>(bytes, key, index_limit, -8);
    case DType::kInt16:
      return FillIntegers<int16_t>(bytes, key, index_limit, -8);
    case DType::kInt8:
      return FillIntegers<int8_t>(bytes, key, index_limit, -8);
    case DType::kUInt64:
      return FillIntegers<uint64_t>(bytes, key, index_limit, 0);
    case DType::kUInt32:
      return FillIntegers<uint32_t>(bytes, key, index_limit, 0);
    case DType::kUInt16:
      return FillIntegers<uint16_t>(bytes, key, index_limit, 0);
    case DType::kUInt8:
      return FillIntegers<uint8_t>(bytes, key, index_limit, 0);
    case DType::kBool:
      return FillIntegers<uint8_t>(bytes, key, 2, 0);
  }
}

}  // namespace kiln
