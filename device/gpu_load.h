// The load of this machine's GPUs, by NVML, where the driver has it.
#pragma once

#include <string>

namespace kiln::device {

// "GPU 0: 3 processes, 85% busy; GPU 1: no process, 0% busy". Processes that compute, the caller's
// own included. "": there is no NVML, or it says nothing. Loads a library; takes milliseconds.
std::string GpuLoadText();

}  // namespace kiln::device
