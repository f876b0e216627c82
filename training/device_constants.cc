#include "training/device_constants.h"

#include <vector>

#include "base/log.h"

namespace kiln::training {

StatusOr<device::KnownCalibration> FindCalibration(store::Store& store,
                                                   const device::DeviceModel& model) {
  KILN_ASSIGN_OR_RETURN(const std::vector<store::CalibrationRow> rows, store.Calibrations());
  for (const store::CalibrationRow& row : rows) {
    if (row.device != model.name || row.compute_capability != model.compute_capability) continue;
    const auto constants = device::ParseCalibration(row.constants);
    if (constants.ok())
      return device::KnownCalibration{*constants, device::CalibrationSource::kMeasured};
    LogWarn("the calibration of {} is not used: {}; kiln calibrate makes a new one", row.device,
            Message(constants.status()));
  }
  return device::CalibrationOf(model);
}

}  // namespace kiln::training
