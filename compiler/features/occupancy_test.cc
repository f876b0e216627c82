#include "compiler/features/occupancy.h"

#include <gtest/gtest.h>

namespace kiln::features {
namespace {

TEST(RegisterLimit, IsTheShareOfAResidentBlock) {
  const device::DeviceModel gpu = device::UsualGpu(90);
  EXPECT_EQ(RegisterLimit(gpu, 256, 0), 255);
  EXPECT_EQ(RegisterLimit(gpu, 512, 0), 128);
  EXPECT_EQ(RegisterLimit(gpu, 256, 4), 64);
}

TEST(RegisterLimit, ABlockMayHaveFewerThanAMultiprocessor) {
  device::DeviceModel gpu = device::UsualGpu(90);
  gpu.registers_per_block = 32768;
  EXPECT_EQ(RegisterLimit(gpu, 512, 0), 64);
  EXPECT_EQ(RegisterLimit(gpu, 256, 4), 64);
}

}  // namespace
}  // namespace kiln::features
