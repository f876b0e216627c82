#include "device/hardware_params.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

constexpr HardwareParams kAll{.num_cores = -1,
                              .vector_unit_bytes = 16,
                              .cache_line_bytes = 128,
                              .max_shared_memory_per_block_bytes = 232448,
                              .max_local_memory_per_block_bytes = int64_t{1} << 40,
                              .max_threads_per_block = 1024,
                              .max_vthread_extent = 8,
                              .warp_size = 32};
constexpr HardwareRow kAllNumbers = {-1, 16, 128, 232448, int64_t{1} << 40, 1024, 8, 32};

TEST(HardwareParamsTest, RowsAreInTheOrderOfAMeasureRecord) {
  EXPECT_EQ(HardwareRowOf(kAll), kAllNumbers);
  EXPECT_EQ(HardwareParamsOf(kAllNumbers), kAll);
  EXPECT_EQ(HardwareRowOf(HardwareParams()), (HardwareRow{0, 64, 64}));
}

TEST(HardwareParamsTest, WhatIsKnownWins) {
  constexpr HardwareParams kAssumed{.num_cores = 4, .cache_line_bytes = 32, .warp_size = 64};
  HardwareParams want = kAll;
  // -1 means that the number is not known.
  want.num_cores = 4;
  EXPECT_EQ(KnownOr(kAll, kAssumed), want);
  EXPECT_EQ(KnownOr(HardwareParamsOf({}), kAssumed), kAssumed);
}

}  // namespace
}  // namespace kiln
