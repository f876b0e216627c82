#include "rpc/device_state_message.h"

#include "base/status_testing.h"
#include "rpc/fields_testing.h"

namespace kiln {
namespace {

using ::testing::IsEmpty;

TEST(DeviceStateMessage, HasEachFieldAndComesBack) {
  const device::DeviceState state = {.sm_clock_mhz = 1755,
                                     .memory_clock_mhz = 2619,
                                     .temperature_c = 54,
                                     .power_w = 412.5,
                                     .throttle_reasons = {"sw_power_cap", "sync_boost"},
                                     .driver = "550.90",
                                     .cpu_mhz = 2200,
                                     .steal_share = 0.25,
                                     .load = 1.5};
  const v1::DeviceState message = DeviceStateMessage(state);
  EXPECT_THAT(UnsetFields(message), IsEmpty());
  EXPECT_EQ(DeviceStateOf(message), state);
}

// 0 is a value, and not the same as nothing.
TEST(DeviceStateMessage, WhatIsNotKnownStaysSo) {
  EXPECT_EQ(DeviceStateMessage({}).ByteSizeLong(), 0u);
  EXPECT_EQ(DeviceStateOf({}), device::DeviceState());
  const device::DeviceState zero = {.temperature_c = 0, .power_w = 0, .steal_share = 0, .load = 0};
  EXPECT_EQ(DeviceStateOf(DeviceStateMessage(zero)), zero);
}

}  // namespace
}  // namespace kiln
