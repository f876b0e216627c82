#include "base/numbers/packed_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "base/status.h"

namespace kiln {
namespace {

constexpr size_t kBits = 32;

using Word = std::array<uint32_t, kBits>;

size_t Masks(size_t values) { return (values + kBits - 1) / kBits; }

// Returns the bits of 32 values from values[begin] on, with zeros after the last one.
Word BitsAt(std::span<const float> values, size_t begin) {
  Word bits = {};
  if (begin >= values.size()) return bits;
  const size_t count = std::min(kBits, values.size() - begin);
  std::memcpy(bits.data(), values.data() + begin, count * sizeof bits[0]);
  return bits;
}

uint32_t MaskOfDifferences(const Word& a, const Word& b) {
  uint32_t mask = 0;
  for (size_t bit = 0; bit < kBits; ++bit)
    mask |= static_cast<uint32_t>(a[bit] != b[bit] ? 1 : 0) << bit;
  return mask;
}

}  // namespace

PackedRows RowsPacker::Pack(const FloatMatrix& rows) {
  if (pattern_.columns() == 0) pattern_ = rows;
  KILN_CHECK(rows.columns() == pattern_.columns(), "{} columns, the pattern has {}", rows.columns(),
             pattern_.columns());
  const std::span<const float> values = rows.values();
  const size_t masks = Masks(values.size());
  PackedRows packed;
  packed.rows_ = rows.rows();
  std::vector<uint32_t> words(masks + values.size());
  size_t end = masks;
  for (size_t m = 0; m < masks; ++m) {
    const Word own = BitsAt(values, m * kBits);
    // The pattern ends where the values end: bits after the last value are equal.
    const size_t last = std::min(pattern_.values().size(), values.size());
    const Word pattern = BitsAt(pattern_.values().first(last), m * kBits);
    words[m] = MaskOfDifferences(own, pattern);
    for (uint32_t left = words[m]; left != 0; left &= left - 1)
      words[end++] = own[static_cast<size_t>(std::countr_zero(left))];
  }
  packed.words_.assign(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(end));
  return packed;
}

FloatMatrix RowsPacker::Unpack(const PackedRows& packed) const {
  FloatMatrix rows(packed.rows_, pattern_.columns());
  const size_t count = rows.values().size();
  if (count == 0) return rows;
  // All rows lie one after the other.
  float* const values = rows.row(0).data();
  const size_t of_pattern = std::min(count, pattern_.values().size());
  std::memcpy(values, pattern_.values().data(), of_pattern * sizeof values[0]);
  const size_t masks = Masks(count);
  size_t next = masks;
  for (size_t m = 0; m < masks; ++m) {
    for (uint32_t left = packed.words_[m]; left != 0; left &= left - 1) {
      const size_t i = m * kBits + static_cast<size_t>(std::countr_zero(left));
      values[i] = std::bit_cast<float>(packed.words_[next++]);
    }
  }
  return rows;
}

}  // namespace kiln
