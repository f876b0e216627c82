#include "compiler/instructions/matrix_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::instructions {
namespace {
using ir::MatrixUnitScope;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr MatrixUnitScope kWarp = MatrixUnitScope::kWarp, kFour = MatrixUnitScope::kWarpgroup;

TEST(MatrixShape, WarpsAreEightByFourThreads) {
  for (const int64_t columns : {4, 8, 16, 32}) {
    EXPECT_THAT(WhyNoThreads(kWarp, 8, columns), IsEmpty()) << columns;
    EXPECT_THAT(WhyNoThreads(kWarp, 24, columns), IsEmpty()) << columns;
  }
  for (const int64_t columns : {0, 2, 6, 12, 64}) {
    EXPECT_THAT(WhyNoThreads(kWarp, 8, columns), HasSubstr("expected 4, 8, 16 or 32")) << columns;
  }
  EXPECT_EQ(WhyNoThreads(kWarp, 12, 4), "the rows have 12 threads, expected a multiple of 8");
}

TEST(MatrixShape, FourWarpsStandBelowEachOther) {
  EXPECT_THAT(WhyNoThreads(kFour, 32, 4), IsEmpty());
  EXPECT_THAT(WhyNoThreads(kFour, 96, 4), IsEmpty());
  EXPECT_EQ(WhyNoThreads(kFour, 16, 4),
            "a block has 64 threads, expected a multiple of 128 for four warps together");
  EXPECT_THAT(WhyNoThreads(kFour, 32, 8), HasSubstr("beside each other"));
}

TEST(MatrixShape, AThreadHasPairsOfRowsAndOfColumns) {
  for (const MatrixUnitScope scope : {kWarp, kFour}) {
    EXPECT_THAT(WhyNoElements(scope, 2, 2), IsEmpty());
    EXPECT_THAT(WhyNoElements(scope, 4, 64), IsEmpty());
    EXPECT_EQ(WhyNoElements(scope, 1, 4),
              "a thread has 1 rows and 4 columns, expected an even number of each");
    EXPECT_THAT(WhyNoElements(scope, 2, 3), HasSubstr("expected an even number"));
    EXPECT_EQ(WhyNoElements(scope, 6, 64),
              "a thread has 384 elements of the tile, at most 256 can be");
  }
}

TEST(MatrixShape, AnInstructionOfFourWarpsHasSoManyColumns) {
  EXPECT_THAT(WhyNoElements(kFour, 2, 64), IsEmpty());
  EXPECT_THAT(WhyNoElements(kFour, 2, 68), HasSubstr("has 272 columns, at most 256 can be"));
  EXPECT_THAT(WhyNoElements(kWarp, 2, 68), IsEmpty());
}

}  // namespace
}  // namespace kiln::instructions
