// The place of a measured program under the limits of its device: the speed that it reaches, beside
// the peak of the arithmetic units and what the memory can feed.
//
//   limit = min(peak_flops, intensity * bytes_per_s)      intensity = operations / bytes
//
// The bytes are those of all inputs and outputs, which each program must move at least. The device
// is that of the record's model (device/device_model.h). Pure functions.
#pragma once

#include <string>

#include "base/status.h"
#include "device/device_model.h"
#include "store/record.h"

namespace kiln::scheduler {

struct DevicePeaks {
  double peak_flops = 0;
  // The source of the peak: "float32 multiply-adds".
  std::string peak_of;
  double bytes_per_s = 0;
  std::string bytes_of;
};

// NotFound if the model does not tell: the device of target null has no limits.
StatusOr<DevicePeaks> PeaksOf(const device::DeviceModel& model);

struct Roofline {
  DevicePeaks peaks;
  double operations = 0;
  double bytes = 0;
  // Operations for each byte.
  double intensity = 0;
  // Operations per second that the program reaches.
  double flops = 0;
  double limit = 0;
  bool is_memory_bound = false;
};

// NotFound with a sentence for people if the record lacks what it takes.
StatusOr<Roofline> RooflineOf(const store::Record& record);

}  // namespace kiln::scheduler
