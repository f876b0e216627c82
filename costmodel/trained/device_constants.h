// What the analytic model takes a device for: the row that a store keeps of it (kiln calibrate), or
// the built-in one, or one derived from the device's numbers.
#pragma once

#include "base/status.h"
#include "device/calibration.h"
#include "device/device_model.h"
#include "store/store.h"

namespace kiln::costmodel {

// Of a kind of device, by its name and capability. A row of the store that does not parse counts as
// none; the log says so.
StatusOr<device::KnownCalibration> FindCalibration(store::Store& store,
                                                   const device::DeviceModel& model);

}  // namespace kiln::costmodel
