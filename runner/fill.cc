#include "runner/fill.h"

#include <cstring>

namespace kiln::runner {

uint8_t PoisonByte(DType dtype, Poison poison) {
  // 0x5a5a is 203 in float16 and 1.5e16 in float32.
  if (poison == Poison::kStale) return 0x5a;
  return IsFloat(dtype) ? 0xff : 0xa5;
}

void FillPoison(std::span<std::byte> bytes, DType dtype, Poison poison) {
  std::memset(bytes.data(), PoisonByte(dtype, poison), bytes.size());
}

void PoisonOne(std::span<std::byte> bytes, DType dtype, Poison poison, int64_t element) {
  const auto size = static_cast<size_t>(DTypeBytes(dtype));
  FillPoison(bytes.subspan(static_cast<size_t>(element) * size, size), dtype, poison);
}

}  // namespace kiln::runner
