// The least time in which a device can do a program's work. A shorter one is no measurement: the
// work was not done, or not while the clock ran.
#pragma once

#include "base/status.h"
#include "device/device_model.h"
#include "proto/trial.pb.h"

namespace kiln::runner {

// Returns the seconds below which no call of a program with this plan takes. `operations` is the
// least work of the workload (MeasureRequest.operations). The figures are those of the fastest
// units that the device can have for the narrowest input, four times over: for algorithms that need
// fewer operations (Winograd's), clocks above the announced one, and newer units. Outputs count as
// stores to the nearest cache. 0 if the model has no figures.
double LeastSeconds(const device::DeviceModel& model, const v1::LaunchPlan& plan,
                    double operations);

// InvalidArgument if a reading of the result is below the floor; names both, and the work.
Status CheckFloor(const device::DeviceModel& model, const v1::LaunchPlan& plan, double operations,
                  const v1::TrialResult& result);

}  // namespace kiln::runner
