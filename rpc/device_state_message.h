// Converts states of devices (device/device_state.h) to the wire's message and back. Nothing is
// lost.
#pragma once

#include "device/device_state.h"
#include "proto/trial.pb.h"

namespace kiln {

v1::DeviceState DeviceStateMessage(const device::DeviceState& state);
device::DeviceState DeviceStateOf(const v1::DeviceState& message);

}  // namespace kiln
