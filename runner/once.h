// One measurement from a file, to reproduce a trial by hand.
#pragma once

#include <string>

#include "base/status.h"
#include "runner/device_slot.h"

namespace kiln::runner {

// Measures the MeasureRequest at `path` (base/file/message_file.h) in a child of its own, as the
// daemon does, and prints the reply's text form on stdout.
Status MeasureOnce(const std::string& path, DeviceSlot& slot);

}  // namespace kiln::runner
