// Converts device models (device/device_model.h) to the wire's message and back. Nothing is lost.
#pragma once

#include "base/status.h"
#include "device/device_model.h"
#include "proto/tracker.pb.h"

namespace kiln {

v1::DeviceModel DeviceMessage(const device::DeviceModel& model);

// Refuses the models that device::CheckDeviceModel refuses.
StatusOr<device::DeviceModel> DeviceModelOf(const v1::DeviceModel& message);

// Returns the device model that a runner announces. InvalidArgument "runner r1 (version 1)
// announces no device model; ..." if there is none, for instance from a runner of an older version.
StatusOr<device::DeviceModel> DeviceModelOf(const v1::WorkerState& runner);

}  // namespace kiln
