// Converts hardware parameters (device/hardware_params.h) to the wire's message and back. Nothing
// is lost.
#pragma once

#include "device/hardware_params.h"
#include "proto/tracker.pb.h"

namespace kiln {

v1::HardwareParams HardwareMessage(const HardwareParams& params);
HardwareParams HardwareParamsOf(const v1::HardwareParams& message);

}  // namespace kiln
