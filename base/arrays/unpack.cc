#include "base/arrays/unpack.h"

#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "base/status.h"

namespace kiln {
namespace {

// Unpacks by packing the numbers of the elements, from 1 on: the number in each place of the packed
// array says which element of the plain array stands there. 0 is padding.
template <typename Number>
void UnpackByNumbers(const Packing& packing, size_t element_bytes, size_t elements,
                     std::span<const std::byte> packed, std::span<std::byte> plain) {
  std::vector<Number> numbers(elements);
  std::iota(numbers.begin(), numbers.end(), Number{1});
  std::vector<Number> places(static_cast<size_t>(PackedElements(packing)));
  Pack(packing, sizeof(Number), std::as_bytes(std::span(numbers)),
       std::as_writable_bytes(std::span(places)));
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] == 0) continue;
    std::memcpy(plain.data() + (places[i] - 1) * element_bytes, packed.data() + i * element_bytes,
                element_bytes);
  }
}

}  // namespace

void Unpack(const Packing& packing, int64_t element_bytes, std::span<const std::byte> packed,
            std::span<std::byte> plain) {
  const auto bytes = static_cast<size_t>(element_bytes);
  const size_t elements = plain.size() / bytes;
  KILN_CHECK(static_cast<int64_t>(packed.size()) == PackedElements(packing) * element_bytes,
             "unpacking {} bytes of {}", packed.size(), PackingText(packing));
  elements < std::numeric_limits<uint32_t>::max()
      ? UnpackByNumbers<uint32_t>(packing, bytes, elements, packed, plain)
      : UnpackByNumbers<uint64_t>(packing, bytes, elements, packed, plain);
}

}  // namespace kiln
