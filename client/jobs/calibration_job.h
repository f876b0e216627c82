// Makes the specification of a job from whose results the scheduler fits the analytic model's
// constants of its device.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

struct Calibration {
  // Never "".
  std::string target;
  // Device that measures; "": any.
  std::string device;
  uint32_t trials = 390;
  uint64_t seed = 1;
};

StatusOr<v1::JobSpec> MakeCalibrationSpec(const Calibration& calibration);

}  // namespace kiln::client
