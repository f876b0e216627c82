// One measurement from a file, to reproduce a trial by hand.
#pragma once

#include <string>

#include "base/status.h"
#include "runner/device_slot.h"

namespace kiln::runner {

// A MeasureRequest: text form when the name ends in .txtpb, .textproto, .pbtxt or .txt, else
// binary.
StatusOr<v1::MeasureRequest> ReadMeasureRequest(const std::string& path);

// Measures it and prints the reply's text form on stdout. In a child of its own, as the daemon
// does.
Status MeasureOnce(const std::string& path, DeviceSlot& slot);

}  // namespace kiln::runner
