// A reading of a device's canary program: a small fixed program whose time says how fast the device
// is now (docs/device-state.md).
#pragma once

#include <functional>

#include "base/status.h"

namespace kiln::runner {

// Takes spans with `time_span` until one is no faster than the one before by more than 2%, but at
// most six, and returns the last one. A device that was idle has low clocks at first.
StatusOr<double> SettledSeconds(const std::function<StatusOr<double>()>& time_span);

}  // namespace kiln::runner
