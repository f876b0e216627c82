// The load of this machine's GPUs, by NVML, if the driver has it.
#pragma once

#include <string>

namespace kiln::device {

// Returns "GPU 0: 3 processes, 85% busy; GPU 1: no process, 0% busy". It counts processes that
// compute, the caller's own included. "": NVML is missing or reports nothing. Loads a library;
// takes milliseconds.
std::string GpuLoadText();

}  // namespace kiln::device
