// Finds the analytic model's constants of a device: the row that a store keeps for it (kiln
// calibrate), or the built-in row, or a row derived from the device's numbers.
#pragma once

#include "base/status.h"
#include "device/calibration.h"
#include "device/device_model.h"
#include "store/store.h"

namespace kiln::training {

// Finds the row for a kind of device, by its name and capability. A row of the store that does not
// parse is ignored, and logged.
StatusOr<device::KnownCalibration> FindCalibration(store::Store& store,
                                                   const device::DeviceModel& model);

}  // namespace kiln::training
