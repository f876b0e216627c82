#include "base/numbers/packed_rows.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/numbers/rng.h"

namespace kiln {
namespace {

FloatMatrix Some(Rng& rng, int rows, int columns) {
  FloatMatrix matrix(rows, columns);
  for (int r = 0; r < rows; ++r) {
    for (float& value : matrix.row(r)) value = static_cast<float>(UniformInt(rng, int64_t{3}));
  }
  return matrix;
}

std::vector<uint32_t> BitsOf(const FloatMatrix& rows) {
  std::vector<uint32_t> bits;
  for (const float value : rows.values()) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

TEST(PackedRowsTest, WhatIsUnpackedEqualsWhatWasPacked) {
  Rng rng(1);
  RowsPacker packer;
  // The second matrices have more rows than the pattern, fewer, and none.
  std::vector<FloatMatrix> matrices = {Some(rng, 3, 77), Some(rng, 5, 77), Some(rng, 1, 77),
                                       FloatMatrix(77), Some(rng, 3, 77)};
  matrices[4].row(0)[0] = -0.0F;
  matrices[4].row(1)[76] = std::numeric_limits<float>::quiet_NaN();
  matrices[4].row(2)[76] = std::numeric_limits<float>::infinity();
  std::vector<PackedRows> packed;
  for (const FloatMatrix& matrix : matrices) packed.push_back(packer.Pack(matrix));
  for (size_t i = 0; i < matrices.size(); ++i) {
    const FloatMatrix unpacked = packer.Unpack(packed[i]);
    EXPECT_EQ(unpacked.rows(), matrices[i].rows());
    EXPECT_EQ(unpacked.columns(), 77);
    EXPECT_EQ(BitsOf(unpacked), BitsOf(matrices[i])) << i;
  }
}

TEST(PackedRowsTest, OnlyTheValuesThatDifferTakeMemory) {
  Rng rng(2);
  RowsPacker packer;
  FloatMatrix rows = Some(rng, 4, 256);
  const size_t equal = packer.Pack(rows).bytes();
  EXPECT_LE(equal, sizeof(PackedRows) + 4 * 256 / 8);
  for (const int column : {0, 31, 32, 255}) rows.row(2)[column] = 7;
  EXPECT_EQ(packer.Pack(rows).bytes(), equal + 4 * sizeof(float));
}

}  // namespace
}  // namespace kiln
