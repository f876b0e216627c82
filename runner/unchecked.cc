#include "runner/unchecked.h"

#include <fmt/format.h>

#include <cstring>

#include "runner/compare.h"

namespace kiln::runner {
namespace {

// Share of elements that may be infinite or NaN. A few infinities are ordinary answers, as in a
// masked softmax.
constexpr double kMaxNotFiniteShare = 0.01;
// Fewer elements may be equal by chance.
constexpr int64_t kMinEqual = 8;

// Counts elements in which all bits of the exponent are set.
template <typename Bits>
int64_t CountNotFinite(std::span<const std::byte> bytes, Bits exponent) {
  int64_t count = 0;
  for (size_t at = 0; at + sizeof(Bits) <= bytes.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + at, sizeof(Bits));
    count += (bits & exponent) == exponent ? 1 : 0;
  }
  return count;
}

int64_t NotFinite(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::kFloat64:
      return CountNotFinite<uint64_t>(bytes, 0x7ff0'0000'0000'0000);
    case DType::kFloat32:
      return CountNotFinite<uint32_t>(bytes, 0x7f80'0000);
    case DType::kFloat16:
      return CountNotFinite<uint16_t>(bytes, 0x7c00);
    case DType::kBFloat16:
      return CountNotFinite<uint16_t>(bytes, 0x7f80);
    // Only NaN, which has all bits set.
    case DType::kFloat8E4M3:
      return CountNotFinite<uint8_t>(bytes, 0x7f);
    case DType::kFloat8E5M2:
      return CountNotFinite<uint8_t>(bytes, 0x7c);
    default:
      return 0;
  }
}

// Returns whether each element has the bits of the element before it.
bool AllEqual(std::span<const std::byte> bytes, size_t element_bytes) {
  return std::memcmp(bytes.data(), bytes.data() + element_bytes, bytes.size() - element_bytes) == 0;
}

}  // namespace

std::string WhyUnchecked(const Argument& argument, std::span<const std::byte> want) {
  const int64_t not_finite = NotFinite(argument.dtype, want);
  if (static_cast<double>(not_finite) >
      kMaxNotFiniteShare * static_cast<double>(argument.elements)) {
    return fmt::format("output {} of the reference is not finite in {} of {} elements",
                       argument.name, not_finite, argument.elements);
  }
  const auto element_bytes = static_cast<size_t>(DTypeBytes(argument.dtype));
  if (argument.elements < kMinEqual || !AllEqual(want, element_bytes)) return "";
  return fmt::format("output {} of the reference is {} in all {} elements", argument.name,
                     ElementText(argument.dtype, want.first(element_bytes)), argument.elements);
}

}  // namespace kiln::runner
