// Device models (device/device_model.h) as the wire's message, and back. Nothing is lost.
#pragma once

#include "base/status.h"
#include "device/device_model.h"
#include "proto/tracker.pb.h"

namespace kiln {

v1::DeviceModel DeviceMessage(const device::DeviceModel& model);

// Refuses what device::CheckDeviceModel does.
StatusOr<device::DeviceModel> DeviceModelOf(const v1::DeviceModel& message);

// What a runner announces of its device. InvalidArgument "runner r1 (version 1) announces no device
// model; ..." without one, for instance from a runner of an older version.
StatusOr<device::DeviceModel> DeviceModelOf(const v1::WorkerState& runner);

}  // namespace kiln
