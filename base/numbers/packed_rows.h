// Rows of floats that are kept for later in little memory.
//
// Feature rows of one task's programs differ in few of their values. So a packer keeps the first
// rows that it packs as a pattern, and of all others the values that differ, bit by bit: rows that
// are unpacked equal those that were packed. Values, not synchronised. Packing and unpacking take
// about a microsecond for 1,000 values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/numbers/float_matrix.h"

namespace kiln {

class PackedRows {
 public:
  size_t bytes() const { return sizeof *this + words_.capacity() * sizeof words_[0]; }

 private:
  friend class RowsPacker;
  int32_t rows_ = 0;
  // A bit for each value that tells whether the value differs from the pattern's; then the values
  // that differ.
  std::vector<uint32_t> words_;
};

class RowsPacker {
 public:
  // All rows that one packer packs have the same number of columns, and those of the first ones
  // are not zero.
  PackedRows Pack(const FloatMatrix& rows);
  // `packed` comes from this packer.
  FloatMatrix Unpack(const PackedRows& packed) const;

 private:
  FloatMatrix pattern_;
};

}  // namespace kiln
